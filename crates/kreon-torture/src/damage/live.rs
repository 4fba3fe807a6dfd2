//! Damage under an open store: what it has in memory is right, but the next open reads the device. So
//! verification must find it now.

use kreon_engine::Engine;
use kreon_sim::{Dice, SimDevice};

use super::atlas::Atlas;
use super::build;
use super::judge::{Case, page_name, tells};
use super::part::{Kind, Part};
use super::run::Extent;
use crate::counts::Counts;

/// Of the bytes of what an open store has in memory one in so many is hit.
const STRIDE: usize = 5;

/// So many bytes of a part, so that long records do not take all the time.
const BYTES_MAX: usize = 820;

/// Hits, one byte at a time, what only the next open reads.
pub fn live(case: &Case, extent: Extent, counts: &mut Counts) -> Result<(), String> {
    let device = build::device(case.fixture.image.clone(), false);
    let engine = build::open(&device).map_err(|error| error.to_string())?;
    // The open has written a checkpoint of its own.
    let atlas = Atlas::read(&device.image()).map_err(|error| format!("atlas: {error}"))?;
    let is_read = |kind| !matches!(kind, Kind::Index(_) | Kind::Leaf | Kind::Record);
    for part in atlas.parts.iter().filter(|part| is_read(part.kind)) {
        let stride = STRIDE * extent.stride.max(1);
        let first = Dice::new(part.range.start).below(stride as u64) as usize;
        for place in part
            .range
            .clone()
            .skip(first)
            .step_by(stride)
            .take(BYTES_MAX)
        {
            let class = format!("under an open store: {}", part.kind.name());
            let bit = (Dice::new(place).roll() % 8) as u8;
            device.flip_bit(place, bit);
            match check(&engine, part) {
                Ok(()) => counts.count(&format!("{class}: found by verify")),
                Err(what) => {
                    counts.count(&format!("{class}: VIOLATION"));
                    let fixture = case.fixture.name;
                    counts.fail(format!(
                        "{class}: byte {place}, bit {bit} of {fixture}: {what}"
                    ));
                }
            }
            device.flip_bit(place, bit);
            if counts.failed > 0 && extent.stops_at_first {
                return Ok(());
            }
        }
    }
    is_clean_again(&engine, &device)
}

/// Verification tells where.
fn check(engine: &Engine, part: &Part) -> Result<(), String> {
    let report = engine
        .verify()
        .map_err(|error| format!("verify: {error}"))?;
    let is_told = report.problems.iter().any(|line| match part.kind {
        Kind::Superblock => line.contains("superblock slot"),
        Kind::TailHeader | Kind::TailRecord | Kind::TailPad => tells(line, &part.lsn.to_string()),
        _ => tells(line, &page_name(part)),
    });
    match is_told {
        true => Ok(()),
        false => Err(format!("verify says {report:?}")),
    }
}

fn is_clean_again(engine: &Engine, device: &SimDevice) -> Result<(), String> {
    let report = engine
        .verify()
        .map_err(|error| format!("verify: {error}"))?;
    match report.problems.first() {
        None => Ok(()),
        Some(first) => Err(format!("of {} bytes: {first}", device.space_bytes())),
    }
}
