//! All changes of all sectors, by several threads.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

use super::fixture::{Fixture, NAMES, device, make};
use super::judge::{Outcome, live, reopened};
use crate::damage::hurt::{Edit, Hurt};
use crate::watchdog::{Watchdog, without_panic};
use crate::{Counts, Extent};
use kreon_sim::SECTOR_BYTES;

/// A sector as a number of bytes.
const SECTOR: u64 = SECTOR_BYTES as u64;

/// Does one in `extent.stride` of all changes to every fixture, each to a volume that is opened then, and to one that is
/// open.
pub fn damage(extent: Extent) -> Counts {
    let started = Instant::now();
    let mut counts = Counts::default();
    for name in NAMES {
        if extent.stops_at_first && counts.failed > 0 {
            break;
        }
        match without_panic(|| sweep(name, extent)) {
            Ok(swept) => counts.add(swept),
            Err(what) => counts.fail(format!("fixture {name}: {what}")),
        }
    }
    counts.elapsed = started.elapsed();
    counts
}

/// Does one change again: `hurt` as a failure says it.
///
/// # Errors
/// What is wrong.
pub fn replay(name: &str, hurt: &str) -> Result<(), String> {
    let fixture = make(name).map_err(|error| error.to_string())?;
    let hurt: Hurt = hurt.parse()?;
    eprintln!("{:?} when it is opened", reopened(&fixture, &hurt)?);
    let device = device(fixture.image.clone());
    let store = fixture.open(&device).map_err(|error| error.to_string())?;
    eprintln!(
        "{:?} under an open store",
        live(&fixture, (&store, &device), &hurt)?
    );
    Ok(())
}

fn sweep(name: &str, extent: Extent) -> Result<Counts, String> {
    let fixture = make(name).map_err(|error| error.to_string())?;
    let sweep = Sweep {
        name,
        all: hurts(&fixture),
        fixture,
        extent,
        next: AtomicUsize::new(0),
        is_over: AtomicBool::new(false),
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..extent.threads.max(1))
            .map(|_| scope.spawn(|| sweep.work()))
            .collect();
        let mut counts = Counts::default();
        for thread in threads {
            match thread
                .join()
                .unwrap_or_else(|_| Err("a thread panicked".into()))
            {
                Ok(of_thread) => counts.add(of_thread),
                Err(what) => counts.fail(what),
            }
        }
        Ok(counts)
    })
}

/// What the threads of a sweep share.
struct Sweep<'a> {
    name: &'a str,
    fixture: Fixture,
    all: Vec<(&'static str, Hurt)>,
    extent: Extent,
    /// Counts the changes that threads have begun.
    next: AtomicUsize,
    is_over: AtomicBool,
}

impl Sweep<'_> {
    /// Does one change after the other, with an open store of this thread.
    fn work(&self) -> Result<Counts, String> {
        let watchdog = Watchdog::start();
        let mut counts = Counts::default();
        let device = device(self.fixture.image.clone());
        let opened = self.fixture.open(&device);
        let store = opened.map_err(|error| error.to_string())?;
        while !self.is_over.load(Ordering::Relaxed) {
            let turn = self.next.fetch_add(1, Ordering::Relaxed) * self.extent.stride.max(1);
            if turn >= self.all.len() {
                break;
            }
            // All over the list, so that the first few have something of everything.
            let (class, hurt) = &self.all[turn * 1_000_003 % self.all.len()];
            let command = format!("kvell damage --fixture {} --hurt {hurt}", self.name);
            watchdog.begin(command.clone());
            let mut judged = |when: &str, outcome: Result<Outcome, String>| match outcome {
                Ok(outcome) => counts.count(&format!("{class}, {when}: {outcome:?}")),
                Err(what) => counts.fail(format!("{class}, {when}: {what}\n  {command}")),
            };
            judged("opened", without_panic(|| reopened(&self.fixture, hurt)));
            let open = (&store, &*device);
            judged("open", without_panic(|| live(&self.fixture, open, hurt)));
            if self.extent.stops_at_first && counts.failed > 0 {
                self.is_over.store(true, Ordering::Relaxed);
            }
        }
        Ok(counts)
    }
}

/// All changes: of each sector that is not blank each byte, all of it, and what stands elsewhere in its place.
fn hurts(fixture: &Fixture) -> Vec<(&'static str, Hurt)> {
    let sectors: Vec<u64> = (0..fixture.image.len_bytes() / SECTOR)
        .map(|number| number * SECTOR)
        .filter(|&at| fixture.image.bytes(at, SECTOR_BYTES) != [0; SECTOR_BYTES])
        .collect();
    let mut all = Vec::new();
    for (rank, &at) in sectors.iter().enumerate() {
        let mut add = |class, edit| all.push((class, Hurt::one(edit)));
        for byte in 0..SECTOR {
            add("bit", Edit::Flip(at + byte, 1 << (byte * 5 % 8)));
        }
        // Several times: a sweep of a few changes is to have some of these.
        for _ in 0..SECTOR / 32 {
            add("zeroes", Edit::Zero(at, SECTOR));
            if fixture.image.bytes(at, SECTOR_BYTES) != fixture.older.bytes(at, SECTOR_BYTES) {
                add("older", Edit::Older(at, SECTOR));
            }
        }
        for step in [1, 2, 7, 31, 64, 97, 150, 211] {
            let from = sectors[(rank + step) % sectors.len()];
            if from != at {
                add("elsewhere", Edit::Copy(from, at, SECTOR));
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damage_to_any_sector_of_a_volume_of_kvell_is_told_or_does_no_harm() {
        let counts = damage(Extent {
            stride: 9001,
            ..Extent::default()
        });
        assert_eq!(counts.failed, 0, "{counts}");
        let kinds = ["Refused", "Told", "Harmless"];
        let has = |kind| counts.tried.keys().any(|class| class.ends_with(kind));
        assert!(kinds.into_iter().all(has), "{counts}");
    }
}
