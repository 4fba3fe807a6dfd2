//! All changes of all sectors.

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
        if let Err(what) = without_panic(|| sweep(name, extent, &mut counts)) {
            counts.fail(format!("fixture {name}: {what}"));
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

fn sweep(name: &str, extent: Extent, counts: &mut Counts) -> Result<(), String> {
    let fixture = make(name).map_err(|error| error.to_string())?;
    let watchdog = Watchdog::start();
    let open_device = device(fixture.image.clone());
    let store = fixture
        .open(&open_device)
        .map_err(|error| error.to_string())?;
    let all = hurts(&fixture);
    for turn in (0..all.len()).step_by(extent.stride.max(1)) {
        // All over the list, so that the first few have something of everything.
        let (class, hurt) = &all[turn * 1_000_003 % all.len()];
        let command = format!("kvell damage --fixture {name} --hurt {hurt}");
        watchdog.begin(command.clone());
        let mut judged = |when: &str, outcome: Result<Outcome, String>| match outcome {
            Ok(outcome) => counts.count(&format!("{class}, {when}: {outcome:?}")),
            Err(what) => counts.fail(format!("{class}, {when}: {what}\n  {command}")),
        };
        judged("opened", without_panic(|| reopened(&fixture, hurt)));
        let open = (&store, &*open_device);
        judged("open", without_panic(|| live(&fixture, open, hurt)));
        if extent.stops_at_first && counts.failed > 0 {
            break;
        }
    }
    Ok(())
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
