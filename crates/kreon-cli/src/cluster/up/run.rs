//! `kreon cluster up`.

use std::collections::BTreeSet;
use std::env;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use clap::Args;
use kreon::{Error, ErrorKind, Result as StoreResult};
use kreon_client::ClusterUrl;
use kreon_node::layout::InitSettings;
use kreon_wire::Member;
use kreon_zookeeper::Jars;

use super::end::{end, runs};
use super::folder::Folder;
use super::launch::Launched;
use super::plan::{Plan, Wanted};
use crate::cluster::survey::Surveyor;
use crate::failure::{Code, Failure, Result, tell};
use crate::interrupt::Interrupt;
use crate::sink::Sink;
use crate::size::parse_size;

/// How long Maven may take.
const FETCH_MAX: Duration = Duration::from_secs(300);

/// How long servers may take to open what they have, and to agree.
const SERVING_MAX: Duration = Duration::from_secs(120);

/// Names the folder of ZooKeeper's files.
const JARS_VARIABLE: &str = "KREON_ZOOKEEPER";

/// Start a cluster on this machine: ZooKeeper, and servers as processes; Ctrl-C ends all of them
///
/// On a folder that it was used on before it goes on with the cluster there, and starts what does not run. ZooKeeper
/// needs Java; its files are fetched by Maven (mvn) the first time, and their checksums verified.
#[derive(Debug, Args)]
pub struct Up {
    /// Folder of all data and logs; made if it is not there
    #[arg(long, value_name = "FOLDER")]
    data: PathBuf,
    /// How many servers [default: 3]
    #[arg(long)]
    servers: Option<usize>,
    /// Return when the cluster serves; `kreon cluster down` ends it
    #[arg(long)]
    detach: bool,
    /// Groups, among which the ranges of tables are divided; each has one primary [default: one for each server]
    #[arg(long)]
    groups: Option<u32>,
    /// Memory of each server [default: 256MiB]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    memory: Option<usize>,
    /// Name of the cluster [default: local]
    #[arg(long)]
    name: Option<String>,
    /// Port of ZooKeeper on 127.0.0.1, 0: any [default: 2181]
    #[arg(long, value_name = "PORT")]
    zookeeper_port: Option<u16>,
    /// Port of the first server on 127.0.0.1, the others have the next ones; 0: any [default: 7401]
    #[arg(long, value_name = "PORT")]
    port: Option<u16>,
    /// Folder of the files of ZooKeeper [env: KREON_ZOOKEEPER] [default: kreon/zookeeper in your cache]
    #[arg(long, value_name = "FOLDER")]
    zookeeper_files: Option<PathBuf>,
}

impl Up {
    pub fn run(&self, out: &mut Sink) -> Result<()> {
        let interrupt = Interrupt::on_signals()?;
        let folder = Folder::open(&self.data, true)?;
        let turn = folder.turn()?;
        let known = Plan::read(&folder.plan())?;
        let is_running = known.as_ref().map(|plan| runs(&folder, plan)).transpose()?;
        let plan = Plan::of(known, &self.wanted(), is_running == Some(true))?;
        let jars = self.jars()?;
        plan.write(&folder.plan())?;
        let mut launched = Launched::new(&folder, &plan);
        let begun = self.begin(&mut launched, &plan, &jars, &interrupt, out);
        drop(turn);
        if begun.is_ok() && self.detach {
            return Ok(());
        }
        let watched = begun.and_then(|()| watch(&folder, &plan, &mut launched, &interrupt));
        let _turn = folder.turn()?;
        let ended = end(&folder, &plan, |step| tell(&format!("kreon: {step}")));
        match watched {
            // As asked for.
            Err(failure) if failure.is_interruption() => Ok(ended.map(drop)?),
            watched => watched,
        }
    }

    fn wanted(&self) -> Wanted {
        Wanted {
            name: self.name.clone(),
            servers: self.servers,
            groups: self.groups,
            memory_bytes: self.memory,
            zookeeper_port: self.zookeeper_port,
            port: self.port,
        }
    }

    /// The files of ZooKeeper, fetched if need be.
    fn jars(&self) -> Result<Jars> {
        let named = env::var_os(JARS_VARIABLE).filter(|path| !path.is_empty());
        let named = self.zookeeper_files.clone().or(named.map(PathBuf::from));
        let folder = named.or_else(cache).ok_or_else(|| {
            Failure::usage(
                "there is no folder for caches: give --zookeeper-files FOLDER, or set HOME",
            )
        })?;
        let found = match Jars::find(&folder) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                tell(&format!(
                    "kreon: fetching ZooKeeper into {}",
                    folder.display()
                ));
                fetch(&folder)
            }
            found => found,
        };
        found.map_err(|error| match error.kind() {
            ErrorKind::NotFound => Failure::new(
                Code::Other,
                format!("no ZooKeeper: {error}"),
                "install a Java runtime (JAVA_HOME or java in the path) and Maven (mvn), or name a folder with its files \
                 by --zookeeper-files",
            ),
            ErrorKind::Corruption => Failure::from(error)
                .with_advice(format!("remove {} to have it fetched again", folder.display())),
            _ => error.into(),
        })
    }

    fn begin(
        &self,
        launched: &mut Launched<'_>,
        plan: &Plan,
        jars: &Jars,
        interrupt: &Interrupt,
        out: &mut Sink,
    ) -> Result<()> {
        launched.zookeeper(jars, interrupt)?;
        let url = ClusterUrl::parse(&plan.url())?;
        let mut surveyor = Surveyor::begin(&url)?;
        if !surveyor.has_cluster()? {
            let servers = u32::try_from(plan.server_ports.len()).unwrap_or(u32::MAX);
            let mut settings = InitSettings::new(&plan.name, servers);
            settings.groups = Some(plan.groups);
            surveyor.init(&settings)?;
        }
        // What the servers of an earlier `up` left: nobody answers there any more.
        let mut gone = surveyor.look()?.live;
        for number in 1..=plan.server_ports.len() {
            if !launched.server(number)? {
                gone.retain(|member| member.server.0 as usize != number);
            }
        }
        wait((&url, &mut surveyor), &gone, launched, interrupt)?;
        self.tell_next(launched, plan, out)
    }

    fn tell_next(&self, launched: &Launched<'_>, plan: &Plan, out: &mut Sink) -> Result<()> {
        out.line(&format!(
            "cluster `{}` serves: {} servers, {} groups\n\n  export KREON_CLUSTER={}\n  kreon put gr/chania 53910\n  \
             kreon get gr/chania\n  kreon cluster status\n",
            plan.name,
            plan.server_ports.len(),
            plan.groups,
            plan.url()
        ))?;
        for number in 1..=plan.server_ports.len() {
            if let Some(page) = launched.status_page(number) {
                out.line(&format!("server {number} shows its status at {page}"))?;
            }
        }
        let data = self.data.display();
        out.line(&match self.detach {
            true => format!("`kreon cluster down --data {data}` ends it"),
            false => "Ctrl-C ends it".to_owned(),
        })?;
        Ok(out.flush()?)
    }
}

fn fetch(folder: &Path) -> StoreResult<Jars> {
    Jars::fetch(folder, FETCH_MAX)
}

/// `kreon/zookeeper` in the user's cache (`XDG_CACHE_HOME`).
fn cache() -> Option<PathBuf> {
    let folder = |name| {
        env::var_os(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    folder("XDG_CACHE_HOME")
        .or_else(|| folder("HOME").map(|home| home.join(".cache")))
        .map(|cache| cache.join("kreon/zookeeper"))
}

/// Waits until each group has a primary that is not one of those that are `gone`.
fn wait(
    (url, surveyor): (&ClusterUrl, &mut Surveyor),
    gone: &BTreeSet<Member>,
    launched: &mut Launched<'_>,
    interrupt: &Interrupt,
) -> Result<()> {
    let begun = Instant::now();
    loop {
        interrupt.check()?;
        if let Some(failure) = launched.ended() {
            return Err(failure);
        }
        let told = match surveyor.look() {
            Ok(mut survey) => {
                survey.live.retain(|member| !gone.contains(member));
                if survey.all_have_primaries() {
                    return Ok(());
                }
                survey.warnings().join("; ")
            }
            // ZooKeeper had no time for us: three servers begin their work at the same moment.
            Err(error) if matches!(error.kind(), ErrorKind::Io | ErrorKind::Closed) => {
                if let Ok(again) = Surveyor::begin(url) {
                    *surveyor = again;
                }
                error.to_string()
            }
            Err(error) => return Err(error.into()),
        };
        if begun.elapsed() > SERVING_MAX {
            let busy = Error::new(
                ErrorKind::Busy,
                format!("the cluster does not serve: {told}"),
            );
            return Err(Failure::from(busy).with_advice("its logs are in the folder of --data"));
        }
        sleep(Duration::from_millis(50));
    }
}

/// Tells of processes that end by themselves, until a signal comes or somebody has ended all of them.
fn watch(
    folder: &Folder,
    plan: &Plan,
    launched: &mut Launched<'_>,
    interrupt: &Interrupt,
) -> Result<()> {
    loop {
        interrupt.check()?;
        while let Some(ended) = launched.ended() {
            tell(&format!("kreon: {ended}"));
        }
        if !runs(folder, plan)? {
            tell("kreon: nothing runs any more");
            return Ok(());
        }
        sleep(Duration::from_millis(100));
    }
}
