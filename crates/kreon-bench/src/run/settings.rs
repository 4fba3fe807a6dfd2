//! What is measured: a preset, and what the command line changes about it.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::preset::{Preset, Sweep};
use crate::engine::Kind;
use crate::engine::planted::Plant;
use crate::engine::tuning::Means;
use crate::ycsb::choice::Distribution;
use crate::ycsb::mix::Mix;
use crate::ycsb::phase::Phase;
use crate::ycsb::workload::Workload;

/// The command line of `ycsb`.
#[derive(clap::Args, Clone, Debug)]
pub struct Arguments {
    /// What to measure.
    #[arg(long, value_enum, default_value = "quick")]
    pub preset: Preset,
    /// The stores, by turns.
    #[arg(long, value_delimiter = ',')]
    pub engines: Vec<Kind>,
    /// Sizes of the pairs.
    #[arg(long, value_enum, value_delimiter = ',')]
    pub mix: Vec<Mix>,
    /// Only these workloads; the loads that they need come by themselves.
    #[arg(long, value_enum, value_delimiter = ',')]
    pub workloads: Vec<Workload>,
    /// Whom requests ask for, in all workloads.
    #[arg(long, value_enum)]
    pub distribution: Option<Distribution>,
    /// Records to load.
    #[arg(long)]
    pub records: Option<u64>,
    /// Requests of each workload behind the load; scans get a twentieth.
    #[arg(long)]
    pub operations: Option<u64>,
    /// No workload behind the load takes longer than this.
    #[arg(long)]
    pub seconds: Option<f64>,
    /// No load takes longer than this: the workloads behind it work on what is there, and it is marked.
    #[arg(long)]
    pub load_seconds: Option<f64>,
    /// Behind E and G scans go on for so many seconds, and then E and G are run again: for stores that lay together what
    /// is scanned.
    #[arg(long)]
    pub converge_seconds: Option<f64>,
    /// Behind Load E nobody asks for anything for so many seconds: for stores that lay values together in idle time. What
    /// they write and compute meanwhile counts for the load.
    #[arg(long)]
    pub rest_seconds: Option<f64>,
    /// Workload C asks for so many records in one call: `multi_get`. Its latency is that of a call.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub reads_together: u32,
    /// So many requests a second, by all clients together, in every workload and load: to compare latencies at the same
    /// load. A request that is late because of one before it counts from when it was due.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    pub ops_per_second: Option<u32>,
    /// Clients.
    #[arg(long, value_delimiter = ',')]
    pub threads: Vec<usize>,
    /// Memory of each store, in MiB; several: a point of the run for each.
    #[arg(long, value_delimiter = ',')]
    pub memory_mib: Vec<u64>,
    /// Rounds: each store once in each.
    #[arg(long)]
    pub rounds: Option<u32>,
    /// Of all draws.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Every write is durable when it returns.
    #[arg(long)]
    pub sync: bool,
    /// Watch how random the device transfers are (`Kreon 4.4`): kreon only.
    #[arg(long)]
    pub trace: bool,
    /// Makes the stores wrong on purpose, to see that the run fails.
    #[arg(long, value_enum)]
    pub plant: Option<Plant>,
    /// Where results go: `results.json`, `results.md`, `report.html`.
    #[arg(long)]
    pub out: Option<PathBuf>,
    /// Folder for the stores; a new one in the current folder, deleted afterwards, if not given.
    #[arg(long)]
    pub dir: Option<PathBuf>,
}

/// A point to measure: every store goes through it in every round.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Point {
    /// What tells it from the others; empty if there is one only.
    pub variant: String,
    /// What stores get.
    pub means: Means,
    /// What they go through.
    pub phases: Vec<Phase>,
}

/// All of it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Settings {
    /// Name of the preset.
    pub preset: String,
    /// The stores, the harness's own first.
    pub engines: Vec<Kind>,
    /// The points.
    pub points: Vec<Point>,
    /// Rounds.
    pub rounds: u32,
}

/// Requests of workloads that scan, as a share of the others'.
const SCAN_SHARE: u64 = 20;

/// More than can be made: the time ends them.
const CONVERGING_REQUESTS_MAX: u64 = 1 << 40;

impl Arguments {
    /// The whole plan.
    pub fn settings(&self) -> Settings {
        let mut engines = match self.engines.is_empty() {
            true => self.preset.engines(),
            false => self.engines.clone(),
        };
        // What the harness and the device cost by themselves stands in every run that it is compared with.
        let mut first = vec![Kind::Nothing];
        if self.sync || self.preset.is_sync() {
            first.extend([Kind::Device, Kind::Unwritten]);
        }
        engines.retain(|engine| !first.contains(engine));
        engines.splice(0..0, first);
        Settings {
            preset: self.preset.name().to_owned(),
            engines,
            points: self.points(),
            rounds: self.rounds.unwrap_or(self.preset.rounds()).max(1),
        }
    }

    fn points(&self) -> Vec<Point> {
        let mixes = match self.mix.is_empty() {
            true => self.preset.mixes(),
            false => self.mix.clone(),
        };
        let threads = match self.threads.is_empty() {
            true => self.preset.threads(),
            false => self.threads.clone(),
        };
        let mut points = Vec::new();
        for mix in &mixes {
            for threads in &threads {
                for (sweep, memory_bytes) in self.sweep_over_memories() {
                    let mut names = vec![sweep.name()];
                    let is_one = self.memories().len() < 2;
                    names.extend((!is_one).then(|| format!("{} MiB", memory_bytes >> 20)));
                    names.extend((mixes.len() > 1).then(|| format!("mix {}", mix.name())));
                    let is_alone = self.threads.len().max(self.preset.threads().len()) < 2;
                    names.extend((!is_alone).then(|| format!("{threads} clients")));
                    names.retain(|name| !name.is_empty());
                    points.push(Point {
                        variant: names.join(", "),
                        means: self.means(*mix, sweep, memory_bytes),
                        phases: self.phases(*mix, *threads, sweep),
                    });
                }
            }
        }
        points
    }

    /// The points of the preset's sweep. One over distributions gives way to the command line.
    fn sweep(&self) -> Vec<Sweep> {
        let mut sweep = self.preset.sweep();
        if self.distribution.is_some() {
            sweep.retain(|point| point.distribution().is_none());
        }
        if sweep.is_empty() {
            sweep.push(Sweep::Default);
        }
        sweep
    }

    /// Memory of each store at each point.
    fn memories(&self) -> Vec<u64> {
        match self.memory_mib.is_empty() {
            true => self.preset.memories(),
            false => self.memory_mib.iter().map(|mib| mib << 20).collect(),
        }
    }

    fn sweep_over_memories(&self) -> impl Iterator<Item = (Sweep, u64)> {
        let (sweep, memories) = (self.sweep(), self.memories());
        let at = move |memory_bytes| sweep.clone().into_iter().map(move |at| (at, memory_bytes));
        memories.into_iter().flat_map(at)
    }

    fn records(&self, mix: Mix) -> u64 {
        self.records.unwrap_or_else(|| {
            let pair_bytes = mix.pair_bytes_mean();
            (self.preset.data_bytes() as f64 / pair_bytes) as u64
        })
    }

    fn means(&self, mix: Mix, sweep: Sweep, memory_bytes: u64) -> Means {
        Means {
            memory_bytes,
            is_sync: self.sync || self.preset.is_sync(),
            mix,
            data_bytes: (self.records(mix) as f64 * mix.pair_bytes_mean()) as u64,
            l0_percent: sweep.l0_percent(),
            l0_checkpoint_seconds: sweep.l0_checkpoint_seconds(),
            inline_bytes: sweep.inline_bytes().or(self.preset.inline_bytes()),
            space_amplification: None,
            write_amplification_max: None,
            is_warmed: self.preset.is_warmed(memory_bytes),
            trace: self.trace || self.preset.is_traced(),
            plant: self.plant,
        }
    }

    fn phases(&self, mix: Mix, threads: usize, sweep: Sweep) -> Vec<Phase> {
        let records = self.records(mix);
        let mut wanted = match self.workloads.is_empty() {
            true => self.preset.workloads(),
            false => with_loads(&self.workloads),
        };
        if self.converge_seconds.is_some() {
            add_converged(&mut wanted);
        }
        let operations = self.operations.unwrap_or(self.preset.operations());
        let phase = |(number, workload): (usize, Workload)| Phase {
            workload,
            mix,
            distribution: self.distribution.or(sweep.distribution()),
            records: 0,
            requests: match workload {
                Workload::Converging => CONVERGING_REQUESTS_MAX,
                workload if workload.is_load() => records,
                workload if workload.scans() => (operations / SCAN_SHARE).max(1),
                _ => operations,
            },
            seconds_max: match workload {
                Workload::Converging => self.converge_seconds,
                workload if workload.is_load() => {
                    self.load_seconds.or(self.preset.load_seconds_max())
                }
                _ => self.seconds.or(self.preset.seconds_max()),
            },
            threads: threads.max(1),
            reads_together: self.reads_together,
            ops_per_second: self.ops_per_second,
            rest_seconds: match workload {
                Workload::LoadE => self.rest_seconds.unwrap_or(self.preset.rest_seconds()),
                _ => 0.0,
            },
            seed: crate::keys::hash(self.seed ^ (number as u64) << 32),
        };
        wanted.into_iter().enumerate().map(phase).collect()
    }
}

/// Puts many scans behind those of `wanted` that scan, and then the same workloads again.
fn add_converged(wanted: &mut Vec<Workload>) {
    let again: Vec<_> = wanted.iter().filter_map(|w| w.converged()).collect();
    if !again.is_empty() {
        wanted.push(Workload::Converging);
        wanted.extend(again);
    }
}

/// The workloads in the papers' order, each behind the load that it needs.
fn with_loads(wanted: &[Workload]) -> Vec<Workload> {
    let on_second = |workload: &Workload| matches!(workload, Workload::E | Workload::G);
    let mut all: Vec<_> = Workload::ALL
        .into_iter()
        .filter(|workload| wanted.contains(workload))
        .collect();
    if all.iter().any(on_second) && !all.contains(&Workload::LoadE) {
        let at = all.iter().position(on_second).unwrap_or(0);
        all.insert(at, Workload::LoadE);
    }
    if all.first().is_some_and(|first| !first.is_load()) {
        all.insert(0, Workload::LoadA);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workloads_come_behind_the_load_that_they_need() {
        use Workload::{C, E, G, LoadA, LoadE};
        assert_eq!(with_loads(&[C]), [LoadA, C]);
        assert_eq!(with_loads(&[G, E]), [LoadE, E, G]);
        assert_eq!(with_loads(&[E, C]), [LoadA, C, LoadE, E]);
        assert_eq!(with_loads(&[LoadA]), [LoadA]);
    }

    #[test]
    fn scans_go_on_between_those_before_and_those_after() {
        use Workload::{C, Converging, E, EConverged, G, GConverged, LoadA, LoadE};
        let mut wanted = vec![LoadA, C, LoadE, E, G];
        add_converged(&mut wanted);
        assert_eq!(wanted[5..], [Converging, EConverged, GConverged]);
        let mut without = vec![LoadA, C];
        add_converged(&mut without);
        assert_eq!(without, [LoadA, C]);
    }
    /// The arguments of a command line.
    fn of_line(line: &str) -> Arguments {
        #[derive(clap::Parser)]
        struct Line {
            #[command(flatten)]
            arguments: Arguments,
        }
        let words = ["ycsb"].into_iter().chain(line.split_whitespace());
        <Line as clap::Parser>::parse_from(words).arguments
    }

    #[test]
    fn each_memory_is_a_point_with_a_name_of_its_own() {
        let points = of_line("--preset leaves --memory-mib 64,256")
            .settings()
            .points;
        let names: Vec<&str> = points.iter().map(|point| point.variant.as_str()).collect();
        assert_eq!(names, ["uniform, 64 MiB", "uniform, 256 MiB"]);
        let memories = points.iter().map(|point| point.means.memory_bytes >> 20);
        assert_eq!(memories.collect::<Vec<_>>(), [64, 256]);
        assert!(
            points
                .iter()
                .all(|point| point.means.inline_bytes == Some(0))
        );
        let points = of_line("--preset small --memory-mib 700").settings().points;
        assert_eq!(points.len(), 1);
        assert_eq!(
            (points[0].variant.as_str(), points[0].means.memory_bytes),
            ("", 700 << 20)
        );
        let points = of_line("--preset tucana").settings().points;
        let is_warmed = points.iter().map(|point| point.means.is_warmed);
        assert_eq!(is_warmed.collect::<Vec<_>>(), [true, false]);
    }
}
