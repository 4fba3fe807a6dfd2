//! What operations demand of what all threads share, and the throughput that no number of cores can exceed for it.
//!
//! By the operational law (P. Denning and J. Buzen, 1978) throughput is at most one over the demand of an operation for a
//! resource. The resources are locks, by the time that they are held, and words that every operation writes, by the time
//! that their cache line needs from one core to another. That is a bound, and no measurement of many cores.

use std::hint::spin_loop;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::AcqRel, Ordering::Acquire};
use std::time::{Duration, Instant};

use anyhow::Context;
use kreon::MappingModes;
use kreon_mapping::{CountWrites, LockTimes, clock_ticks, hold_cost_ticks};

use super::ram::device::RamDevice;
use super::ram::pool::Pool;
use super::ram::{PAGES, Work};
use super::settings::Settings;

const WORKS: [Work; 7] = [
    Work::Hit,
    Work::Records,
    Work::Miss,
    Work::MissEvict,
    Work::Fresh,
    Work::FreshEvict,
    Work::Writeback,
];

/// Measures and prints.
///
/// # Errors
/// If there is no memory.
pub fn run(settings: &Settings) -> anyhow::Result<()> {
    let clock = Clock::new();
    let transfer_ns = transfer_ns();
    println!(
        "A cache line goes from one core to the other in {transfer_ns:.0} ns (two threads by turns, the best of many). The \
         clock adds {:.0} ns to each hold; that and the {:.0} ns of each timed hold within another are subtracted.\n",
        clock.read_ns, clock.hold_ns
    );
    println!(
        "| operation | threads | of what | how many | each is used | times an operation | found held | ns each | ends it at |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    let device = Arc::new(RamDevice::new(PAGES));
    let mut bounds = Vec::new();
    for &threads in &settings.threads {
        for work in WORKS {
            let mut rounds = Vec::new();
            for _ in 0..settings.rounds {
                rounds.push(round(&device, work, threads, &clock)?);
            }
            let demands = medians(rounds).context("no round")?;
            let mut least: Option<(f64, String)> = None;
            for demand in &demands {
                let millions = demand.millions_a_second(transfer_ns);
                println!("{}", demand.line(work, threads, millions));
                if least.as_ref().is_none_or(|(least, _)| millions < *least) {
                    least = Some((millions, demand.name.clone()));
                }
            }
            bounds.push((work, threads, least));
        }
    }
    println!();
    for (work, threads, least) in bounds {
        match least {
            Some((millions, name)) => println!(
                "{} (holds of {threads} threads): {name} ends it at {millions:.1} M/s whatever the cores. Bound, not \
                 measurement.",
                work.name()
            ),
            None => println!(
                "{}: uses no lock and writes no word that others write: no bound.",
                work.name()
            ),
        }
    }
    println!(
        "\nNot among them: the device, and the read lock of the threads' slots, taken up to three times for a batch of \
         evictions."
    );
    Ok(())
}

/// What an operation demands of one kind of lock or count.
#[derive(Clone)]
struct Demand {
    name: String,
    /// Of how many, among which operations are spread.
    objects: usize,
    /// Uses by an operation.
    uses: f64,
    /// Share of the uses that found it held.
    waits: f64,
    /// How long a use takes; of a count nothing but the way of its cache line.
    hold_ns: f64,
}

impl Demand {
    /// Each use keeps the object busy for as long as it is held, and while its cache line comes from another core.
    fn millions_a_second(&self, transfer_ns: f64) -> f64 {
        1e3 * self.objects as f64 / (self.uses * (self.hold_ns + transfer_ns))
    }

    fn line(&self, work: Work, threads: u64, millions: f64) -> String {
        let kind = match self.hold_ns > 0.0 {
            true => "held",
            false => "written",
        };
        format!(
            "| {} | {threads} | {} | {} | {kind} | {:.3} | {:.1} % | {:.0} | {millions:.1} M/s |",
            work.name(),
            self.name,
            self.objects,
            self.uses,
            self.waits * 100.0,
            self.hold_ns,
        )
    }
}

/// One measurement: what of each kind an operation demands.
fn round(
    device: &Arc<RamDevice>,
    work: Work,
    threads: u64,
    clock: &Clock,
) -> anyhow::Result<Vec<Demand>> {
    let device = Arc::clone(device);
    let pool = Pool::new(device, work, threads, MappingModes::default())?;
    let before: Vec<LockTimes> = pool.mapping.lock_times().collect();
    let written_before: Vec<CountWrites> = pool.mapping.count_writes().collect();
    let done = pool.run()?;
    let operations = done.count as f64;
    let locks = pool
        .mapping
        .lock_times()
        .zip(before)
        .map(|(after, before)| {
            let holds = (after.holds - before.holds) as f64;
            let ticks = (after.held_ticks - before.held_ticks) as f64;
            let inner = (after.inner_holds - before.inner_holds) as f64;
            let held_ns = clock.ns(ticks) - holds * clock.read_ns - inner * clock.hold_ns;
            Demand {
                name: format!("lock: {}", after.name),
                objects: after.locks,
                uses: holds / operations,
                waits: (after.waits - before.waits) as f64 / holds.max(1.0),
                hold_ns: (held_ns / holds.max(1.0)).max(1.0),
            }
        });
    let written = pool.mapping.count_writes().zip(written_before);
    let counts = written.map(|(after, before)| Demand {
        name: format!("count: {}", after.name),
        objects: 1,
        uses: (after.writes - before.writes) as f64 / operations,
        waits: 0.0,
        hold_ns: 0.0,
    });
    Ok(locks.chain(counts).collect())
}

/// The medians of the rounds; what no operation uses is left out.
fn medians(rounds: Vec<Vec<Demand>>) -> Option<Vec<Demand>> {
    let first = rounds.first()?;
    let middle = |at: usize, of: fn(&Demand) -> f64| {
        let mut figures: Vec<f64> = rounds.iter().filter_map(|r| r.get(at)).map(of).collect();
        figures.sort_unstable_by(f64::total_cmp);
        figures.get(figures.len() / 2).copied().unwrap_or(0.0)
    };
    let demands = first.iter().enumerate().map(|(at, demand)| Demand {
        uses: middle(at, |demand| demand.uses),
        waits: middle(at, |demand| demand.waits),
        hold_ns: middle(at, |demand| demand.hold_ns),
        ..demand.clone()
    });
    // What a run uses but a few times, as the search for table room, is no demand of an operation.
    Some(demands.filter(|demand| demand.uses > 1e-5).collect())
}

/// The clock of holds.
struct Clock {
    ns_per_tick: f64,
    /// What a reading costs, which is within each hold.
    read_ns: f64,
    /// What a timed hold of nothing costs its thread.
    hold_ns: f64,
}

impl Clock {
    fn new() -> Self {
        let (start, ticks) = (Instant::now(), clock_ticks());
        while start.elapsed() < Duration::from_millis(100) {
            spin_loop();
        }
        let ns_per_tick = start.elapsed().as_nanos() as f64 / (clock_ticks() - ticks) as f64;
        // The best of many: others may have had the processor meanwhile.
        let costs: Vec<(f64, f64)> = (0..10).map(|_| hold_cost_ticks()).collect();
        let least = |of: fn(&(f64, f64)) -> f64| costs.iter().map(of).fold(f64::INFINITY, f64::min);
        Self {
            ns_per_tick,
            read_ns: least(|cost| cost.0) * ns_per_tick,
            hold_ns: least(|cost| cost.1) * ns_per_tick,
        }
    }

    fn ns(&self, ticks: f64) -> f64 {
        ticks * self.ns_per_tick
    }
}

/// How long a cache line needs from one core to another: half of a round trip between two threads.
fn transfer_ns() -> f64 {
    const TRIPS: u64 = 2000;
    const SLICES: usize = 200;
    let line = AtomicU64::new(0);
    // Waits for a number of one parity and adds one to it.
    let turns = |parity: u64, trips: u64| {
        for _ in 0..trips {
            while line.load(Acquire) % 2 != parity {
                spin_loop();
            }
            line.fetch_add(1, AcqRel);
        }
    };
    let slice = || {
        let start = Instant::now();
        turns(0, TRIPS);
        start.elapsed().as_nanos() as f64 / (2 * TRIPS) as f64
    };
    std::thread::scope(|scope| {
        let turns = &turns;
        scope.spawn(move || turns(1, TRIPS * SLICES as u64));
        (0..SLICES).map(|_| slice()).fold(f64::INFINITY, f64::min)
    })
}
