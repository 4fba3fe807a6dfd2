//! The stream to a backup ends at a packet, with whatever it had done by then. Either its process lives on and is sealed:
//! then its volume has all that was acknowledged as replicated. Or its power goes, too: then it has all that was
//! acknowledged as durable.

use std::sync::Arc;
use std::time::Instant;

use kreon_base::{Error, ErrorKind, Lsn};
use kreon_device::Device;
use kreon_engine::Engine;
use kreon_format::{LOG_HEADER_BYTES, lsn_at};
use kreon_sim::{Dice, Image, Keep, SimDevice};
use kreon_wire::Term;

use super::pair::{Manner, Pair, Ran, device};
use super::sealed::seal;
use super::spread::spread;
use crate::check::{After, check};
use crate::content::Content;
use crate::counts::Counts;
use crate::script::{Shape, Step, script};
use crate::store::Store;

/// Steps of a script.
const STEPS: usize = 36;

/// Of a script's packets so many are cuts at least, unless all are asked for.
const CUTS: u64 = 40;

/// Tries the cuts of the script of `seed`; with `all`, the stream is cut at every packet.
pub fn stream_cuts(seed: u64, all: bool) -> Counts {
    let started = Instant::now();
    let mut counts = Counts::default();
    match base(seed).and_then(|base| first_life(seed, base)) {
        Ok(ran) => {
            counts.note("scripts");
            let most = if all { u64::MAX } else { CUTS };
            let mut dice = Dice::new(seed ^ 0x00c7);
            for index in spread(ran.moments.len(), most, &mut dice) {
                cut(&ran, index, &mut dice, (&mut counts, seed));
            }
        }
        Err(what) => counts.fail(format!("stream-cuts --seed {seed}: {what}")),
    }
    counts.elapsed = started.elapsed();
    counts
}

/// A store that is there already, for most seeds; its content.
pub fn base(seed: u64) -> Result<(Image, Content, u64), String> {
    if seed.is_multiple_of(4) {
        return Ok((Image::default(), Content::new(), 0));
    }
    let mut store = Store::on(Image::default(), &Content::new(), false);
    let said = |error: Error| format!("the base: {error}");
    store.open().map_err(said)?;
    let shape = Shape {
        giants_max: 0,
        ..Shape::of(seed.wrapping_add(3), 12)
    };
    for step in script(seed ^ 0xba5e, shape, &[]) {
        if !matches!(step, Step::Reopen | Step::Kill) {
            store.step(&step)?.map_err(said)?;
        }
    }
    let engine = store.shared_engine().map_err(said)?;
    engine.close().map_err(said)?;
    drop(engine);
    let content = store.model.content(store.model.end());
    store.abandon();
    Ok((store.device.image(), content, 1))
}

/// The script of a seed.
pub fn steps(seed: u64, content: &Content, has_tap: bool) -> Vec<Step> {
    let regions: Vec<_> = content.keys().cloned().collect();
    let shape = Shape::of(seed, STEPS);
    let shape = Shape {
        giants_max: match has_tap {
            true => shape.giants_max.min(3),
            false => 0,
        },
        ..shape
    };
    script(seed, shape, &regions)
}

/// Carries out the script of a seed on a primary and a backup that hold `base`.
///
/// # Errors
/// What went wrong.
pub fn first_life(
    seed: u64,
    (image, content, incarnation): (Image, Content, u64),
) -> Result<Ran, String> {
    let manner = Manner {
        seed,
        has_tap: seed.is_multiple_of(3),
    };
    let steps = steps(seed, &content, manner.has_tap);
    let primary = device(image.clone(), true);
    let pair = Pair {
        log_durable: log_end(&primary)?,
        primary,
        backup: device(image, true),
        term: Term(incarnation + 4),
        seams: Vec::new(),
        content,
    };
    pair.run(&steps, manner, |_| Ok(()))
}

/// The end of the log that a device holds.
fn log_end(device: &Arc<SimDevice>) -> Result<Lsn, String> {
    let device = Arc::clone(device) as Arc<dyn Device>;
    match Engine::examine(&device) {
        Ok(examined) => Ok(examined.log_end),
        // A new log.
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(lsn_at(1, LOG_HEADER_BYTES)),
        Err(error) => Err(format!("examine: {error}")),
    }
}

fn cut(ran: &Ran, index: usize, dice: &mut Dice, (counts, seed): (&mut Counts, u64)) {
    let packets = index + 1;
    let Some(moment) = ran.moments.get(index) else {
        return;
    };
    let mut tell = |what: &str, outcome: Result<(), String>| {
        counts.count(what);
        if let Err(error) = outcome {
            counts.fail(format!(
                "stream-cuts --seed {seed}, {what} after packet {packets}: {error}"
            ));
        }
    };
    let sealed = seal(moment).and_then(|image| judge(ran, packets, image, true));
    tell("sealed", sealed);
    let history = ran.devices.1.history();
    let crash = history.crash_after(moment.events);
    let seed = dice.roll();
    let survivals = [
        Keep::Nothing,
        Keep::SomeWrites { seed },
        Keep::SomeSectors { seed },
    ];
    let choice = dice.below(2) as usize;
    for mut keep in survivals.into_iter().skip(choice).take(2) {
        let image = crash.image(&mut keep);
        tell("power cut", judge(ran, packets, image, false));
    }
}

fn judge(ran: &Ran, packets: usize, image: Image, is_sealed: bool) -> Result<(), String> {
    let progress = ran.progress(packets, is_sealed);
    check(image, &ran.model, progress, After::Checkpoint, false).map(drop)
}
