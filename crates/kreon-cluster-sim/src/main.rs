//! `kreon-cluster-sim`: explores the protocol of the cluster.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use clap::{Parser, ValueEnum};
use kreon_cluster_sim::explore::{Bounds, World, search, sweep};
use kreon_cluster_sim::slots::search_slots;
use kreon_cluster_sim::walk::{CLASSES, Course, walk};

#[derive(Parser)]
#[command(
    name = "kreon-cluster-sim",
    about = "Explores the protocol of the cluster"
)]
struct Arguments {
    /// All states within bounds.
    #[arg(long, value_enum)]
    explore: Option<Row>,
    /// Explores depth first: with less memory, but what is found is not the shortest way.
    #[arg(long)]
    deep: bool,
    /// Shows the state after each step of what was found; of a walk, what happened last.
    #[arg(long)]
    states: bool,
    /// Random walks with so many seeds.
    #[arg(long, default_value_t = 0)]
    seeds: u64,
    /// The first seed.
    #[arg(long, default_value_t = 1)]
    from: u64,
    /// True seconds that pass in each walk.
    #[arg(long, default_value_t = 30)]
    seconds: u64,
    /// The operator vouches for the end of processes that run: walks are to break.
    #[arg(long)]
    operator_lies: bool,
    /// Walks at a time.
    #[arg(long, default_value_t = 1)]
    threads: usize,
    /// With this bug.
    #[cfg(feature = "planted")]
    #[arg(long, value_parser = bug)]
    bug: Option<kreon_base::Bug>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Row {
    /// Two replicas, two writes, two crashes, three terms, one join.
    Two,
    /// Three replicas, one write, the rest as above.
    Three,
    /// Three replicas, two writes, one crash, three terms.
    ThreeTwoWrites,
    /// Three replicas, two writes, two crashes, three terms.
    ThreeTwoCrashes,
    /// Superblock slots of two replicas under power cuts.
    Slots,
}

impl Row {
    fn bounds(self) -> Option<Bounds> {
        match self {
            Self::Two => Some(Bounds::TWO),
            Self::Three => Some(Bounds::THREE),
            Self::ThreeTwoWrites => Some(Bounds::THREE_TWO_WRITES),
            Self::ThreeTwoCrashes => Some(Bounds::THREE_TWO_CRASHES),
            Self::Slots => None,
        }
    }
}

#[cfg(feature = "planted")]
fn bug(name: &str) -> Result<kreon_base::Bug, String> {
    let named = |bug: &&kreon_base::Bug| format!("{bug:?}").eq_ignore_ascii_case(name);
    let mut bugs = kreon_base::Bug::ALL
        .iter()
        .filter(|bug| bug.is_of_cluster());
    bugs.find(named)
        .copied()
        .ok_or_else(|| "there is no such bug".into())
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    #[cfg(feature = "planted")]
    if let Some(bug) = arguments.bug {
        bug.plant();
    }
    let explored = arguments.explore.is_none_or(|row| match row.bounds() {
        Some(bounds) => explore(&bounds, &arguments),
        None => explore_slots(),
    });
    match explored && walks(&arguments) {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

fn explore(bounds: &Bounds, arguments: &Arguments) -> bool {
    let started = Instant::now();
    let verdict = match arguments.deep {
        true => sweep(bounds),
        false => search(bounds),
    };
    println!(
        "{} states, {} steps deep, {}, {:.1} s",
        verdict.states,
        verdict.depth,
        if verdict.is_complete {
            "complete"
        } else {
            "not complete"
        },
        started.elapsed().as_secs_f64()
    );
    let Some(found) = verdict.found else {
        return true;
    };
    let mut world = World::new(bounds);
    for (number, step) in found.steps.iter().enumerate() {
        println!("{:3} {step}", number + 1);
        let _ = world.take(*step); // the last one is the violation
        if arguments.states {
            print!("{world}");
        }
    }
    println!("    {:?}", found.violation);
    false
}

fn explore_slots() -> bool {
    let verdict = search_slots();
    println!("{} states", verdict.states);
    for (number, step) in verdict.found.iter().flatten().enumerate() {
        println!("{:3} {step}", number + 1);
    }
    verdict.found.is_none()
}

fn walks(arguments: &Arguments) -> bool {
    if arguments.seeds == 0 {
        return true;
    }
    let started = Instant::now();
    let next = AtomicU64::new(arguments.from);
    let turns = (0..arguments.threads.max(1)).map(|_| Tally::default());
    let tallies: Vec<Tally> = std::thread::scope(|scope| {
        let turns: Vec<_> = turns
            .map(|mut tally| {
                let next = &next;
                scope.spawn(move || {
                    tally.walk_on(arguments, next);
                    tally
                })
            })
            .collect();
        let ended = turns.into_iter().map(std::thread::ScopedJoinHandle::join);
        ended.map(Result::unwrap_or_default).collect()
    });
    let whole = tallies.into_iter().fold(Tally::default(), Tally::with);
    for class in CLASSES {
        println!("{:>12} {class}", whole.of(class));
    }
    let known = |what: &&&str| CLASSES.contains(what);
    for what in whole.counts.keys().filter(|what| !known(what)) {
        println!("{:>12} ({what})", whole.of(what));
    }
    let missed: Vec<_> = CLASSES
        .iter()
        .filter(|class| whole.of(class) == 0)
        .collect();
    let is_missing = arguments.seeds >= SEEDS_OF_ALL && !missed.is_empty();
    if is_missing {
        println!("never happened: {missed:?}");
    }
    let seconds = started.elapsed().as_secs_f64();
    println!(
        "{} walks, {} broken, {seconds:.1} s",
        whole.walks, whole.broken
    );
    whole.broken == 0 && whole.walks == arguments.seeds && !is_missing
}

/// So many walks have some of everything.
const SEEDS_OF_ALL: u64 = 300;

/// What walks counted.
#[derive(Default)]
struct Tally {
    walks: u64,
    broken: u64,
    counts: BTreeMap<&'static str, u64>,
}

impl Tally {
    fn of(&self, what: &str) -> u64 {
        self.counts.get(what).copied().unwrap_or_default()
    }

    /// Walks with the next seeds.
    fn walk_on(&mut self, arguments: &Arguments, next: &AtomicU64) {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= arguments.from + arguments.seeds {
                return;
            }
            let walked = walk(&Course {
                seed,
                seconds: arguments.seconds,
                trace: arguments.states,
                operator_lies: arguments.operator_lies,
            });
            self.walks += 1;
            for (what, count) in walked.counts {
                *self.counts.entry(what).or_default() += count;
            }
            if let Some((what, us)) = walked.broken {
                self.broken += 1;
                println!("seed {seed}: {what:?} after {us} us");
                walked.trace.iter().for_each(|line| println!("  {line}"));
            }
        }
    }

    fn with(mut self, other: Self) -> Self {
        self.walks += other.walks;
        self.broken += other.broken;
        for (what, count) in other.counts {
            *self.counts.entry(what).or_default() += count;
        }
        self
    }
}
