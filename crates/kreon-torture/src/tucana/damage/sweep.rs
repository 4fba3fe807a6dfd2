//! All changes of all sectors.

use std::time::Instant;

use super::fixture::{Fixture, NAMES, make};
use super::judge::reopened;
use crate::damage::hurt::{Edit, Hurt};
use crate::watchdog::{Watchdog, without_panic};
use crate::{Counts, Extent};
use kreon_sim::SECTOR_BYTES;

/// A sector as a number of bytes.
const SECTOR: u64 = SECTOR_BYTES as u64;

/// A page as a number of bytes.
const PAGE: u64 = kreon_base::PAGE_BYTES as u64;

/// Does one in `extent.stride` of all changes to every fixture.
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
    eprintln!("{:?}", reopened(&fixture, &hurt.parse()?)?);
    Ok(())
}

fn sweep(name: &str, extent: Extent, counts: &mut Counts) -> Result<(), String> {
    let fixture = make(name).map_err(|error| error.to_string())?;
    let watchdog = Watchdog::start();
    let all = hurts(&fixture);
    for turn in (0..all.len()).step_by(extent.stride.max(1)) {
        // All over the list, so that the first few have something of everything.
        let (class, hurt) = &all[turn * 1_000_003 % all.len()];
        let command = format!("tucana damage --fixture {name:?} --hurt {hurt}");
        watchdog.begin(command.clone());
        match without_panic(|| reopened(&fixture, hurt)) {
            Ok(outcome) => counts.count(&format!("{class}: {outcome:?}")),
            Err(what) => counts.fail(format!("{class}: {what}\n  {command}")),
        }
        if extent.stops_at_first && counts.failed > 0 {
            break;
        }
    }
    Ok(())
}

/// All changes: of each sector that is not blank each byte, all of it and the rest of its page, and what stands elsewhere in its
/// place.
fn hurts(fixture: &Fixture) -> Vec<(&'static str, Hurt)> {
    let sectors: Vec<u64> = (0..fixture.image.len_bytes() / SECTOR)
        .map(|number| number * SECTOR)
        .filter(|&at| fixture.image.bytes(at, SECTOR_BYTES) != [0; SECTOR_BYTES])
        .collect();
    let is_older = |at, len_bytes: u64| {
        let len_bytes = len_bytes as usize;
        fixture.image.bytes(at, len_bytes) != fixture.older.bytes(at, len_bytes)
    };
    let mut all = Vec::new();
    for (rank, &at) in sectors.iter().enumerate() {
        let mut add = |class, edit| all.push((class, Hurt::one(edit)));
        for byte in 0..SECTOR {
            add("bit", Edit::Flip(at + byte, 1 << (byte * 5 % 8)));
        }
        let page = at / PAGE * PAGE;
        // Several times: a sweep of a few changes is to have some of these.
        for _ in 0..SECTOR / 32 {
            add("zeroes", Edit::Zero(at, SECTOR));
            add("blank page", Edit::Zero(page, PAGE));
            if is_older(at, SECTOR) {
                add("older", Edit::Older(at, SECTOR));
            }
            if is_older(page, PAGE) {
                add("older page", Edit::Older(page, PAGE));
            }
        }
        for step in [1, 2, 7, 31, 64, 97, 150, 211] {
            let from = sectors[(rank + step) % sectors.len()];
            if from != at {
                add("elsewhere", Edit::Copy(from, at, SECTOR));
            }
            let from = from / PAGE * PAGE;
            if from != page {
                add("page elsewhere", Edit::Copy(from, page, PAGE));
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damage_to_any_sector_of_a_volume_of_tucana_is_told_or_does_no_harm() {
        let counts = damage(Extent {
            stride: 4001,
            ..Extent::default()
        });
        assert_eq!(counts.failed, 0, "{counts}");
        let kinds = ["Told", "Harmless"];
        let has = |kind| counts.tried.keys().any(|class| class.ends_with(kind));
        assert!(kinds.into_iter().all(has), "{counts}");
    }
}
