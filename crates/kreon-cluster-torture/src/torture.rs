//! The command: from arguments to a report.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use kreon_coord::{Coordinator, ZooKeeper};
use kreon_node::layout::{InitSettings, init};
use kreon_zookeeper::Jars;

use crate::arguments::Arguments;
use crate::clients::crowd::Crowd;
use crate::clock::Clock;
use crate::cluster::settings::Settings;
use crate::cluster::view::View;
use crate::cluster::whole::Cluster;
use crate::faults::class::{Class, Deck};
use crate::figures::Report;
use crate::pauses::pauses;
use crate::place::tools::Tools;
use crate::run::Run;

/// How long fetching ZooKeeper may take.
const FETCH_MAX: Duration = Duration::from_secs(180);

/// Time for which every possible class of faults must have happened.
const LONG: Duration = Duration::from_secs(8 * 60);

/// Runs it.
///
/// # Errors
/// A violation, or why there was no run.
pub fn torture(arguments: &Arguments) -> Result<(), String> {
    let jars = Jars::fetch(&Jars::cache(), FETCH_MAX).map_err(|error| error.to_string())?;
    let seed = arguments.seed.unwrap_or_else(any_seed);
    let (folder, kept) = folder(arguments, seed)?;
    let (tools, lacks) = match arguments.plain {
        true => (
            Tools::default(),
            vec!["--plain: nothing that needs root".into()],
        ),
        false => Tools::find(),
    };
    println!("seed {seed}; logs and data in {}", folder.display());
    lacks
        .iter()
        .for_each(|lack| println!("this machine: {lack}"));
    let settings = Settings {
        folder: folder.clone(),
        clock: Clock::begin(),
        tools,
        servers: arguments.servers,
        zookeepers: arguments.zookeepers,
        groups: arguments.groups,
        session: Duration::from_millis(arguments.session_ms),
        memory_mib: 512,
        is_patient: arguments.patient,
        bug: arguments.bug.clone(),
    };
    let outcome = run(arguments, &settings, &jars, seed, lacks);
    match outcome {
        Ok(report) => {
            println!("{}", report.text());
            if let Some(path) = &arguments.json {
                let json =
                    serde_json::to_string_pretty(&report).map_err(|error| error.to_string())?;
                std::fs::write(path, json).map_err(|error| error.to_string())?;
            }
            if !kept && !arguments.keep {
                let _ = std::fs::remove_dir_all(&folder);
            }
            Ok(())
        }
        Err(text) => Err(format!(
            "{text}\nseed {seed}; logs and data are kept in {}",
            folder.display()
        )),
    }
}

fn run(
    arguments: &Arguments,
    settings: &Settings,
    jars: &Jars,
    seed: u64,
    lacks: Vec<String>,
) -> Result<Report, String> {
    let begun = Instant::now();
    let mut cluster = Cluster::prepare(settings, jars)?;
    let zookeepers = cluster.ensemble.addresses();
    make(settings, &zookeepers)?;
    let view = View::start(Settings::CLUSTER, zookeepers, settings.groups);
    let crowd = Crowd {
        clients: arguments.clients,
        pace: Duration::from_millis(arguments.pace_ms),
        probe: Duration::from_millis(5),
        limit: Duration::from_secs(4),
    };
    let mut run = Run::begin(&mut cluster, &view, settings, crowd, seed)?;
    println!(
        "the cluster serves after {:.1} s",
        begun.elapsed().as_secs_f64()
    );
    let until = Duration::from_secs_f64(arguments.minutes * 60.0);
    let classes = classes(arguments, settings);
    match arguments.pauses {
        Some(count) => pauses(&mut run, count)?,
        None => {
            let mut deck = Deck::new(classes.clone(), seed);
            run.until(Instant::now() + until, &mut deck, 4)?;
        }
    }
    let figures = &run.figures;
    let never = classes.iter().find(|class| figures.faults(**class) == 0);
    if let (Some(never), None, true) = (never, arguments.pauses, until >= LONG) {
        return Err(format!("{:?} never happened", never.name()));
    }
    let mut report = figures.report(seed, begun.elapsed().as_secs(), lacks);
    report.failovers = view.failovers();
    report.longest = run.longest.told().to_vec();
    report.judged = run.ledgers.iter().map(|ledger| ledger.judged).sum();
    report.undecided = run.ledgers.iter().map(|ledger| ledger.undecided).sum();
    Ok(report)
}

/// Makes the cluster in ZooKeeper.
fn make(settings: &Settings, zookeepers: &str) -> Result<(), String> {
    let said = |error: kreon_base::Error| error.to_string();
    let session: Arc<dyn Coordinator> =
        Arc::new(ZooKeeper::connect(zookeepers, 4000).map_err(said)?);
    let mut wanted = InitSettings::new(Settings::CLUSTER, settings.servers);
    wanted.groups = Some(settings.groups);
    init(&session, &wanted).map_err(said).map(drop)
}

fn classes(arguments: &Arguments, settings: &Settings) -> Vec<Class> {
    let is_wanted = |class: &&Class| {
        arguments.only.is_empty()
            || arguments
                .only
                .iter()
                .any(|word| class.name().contains(word.as_str()))
    };
    let possible = |class: &&Class| class.is_possible(settings.tools, settings.zookeepers);
    let all = Class::ALL.iter().filter(possible).filter(is_wanted);
    all.copied().collect()
}

fn any_seed() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(1, |now| now.as_nanos() as u64 % 1_000_000_000)
}

fn folder(arguments: &Arguments, seed: u64) -> Result<(PathBuf, bool), String> {
    let given = arguments.data.clone();
    let is_kept = given.is_some();
    let folder = given.unwrap_or_else(|| {
        let name = format!("kreon-cluster-torture-{}-{seed}", std::process::id());
        std::env::temp_dir().join(name)
    });
    std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    Ok((folder, is_kept))
}
