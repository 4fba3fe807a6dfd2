//! Primary and backup lose their power, each at its own moment. Both come back; either goes on, the other one follows. Then
//! that one loses its power again, at any moment, and must open.

use std::sync::Arc;
use std::time::Instant;

use kreon_base::Error;
use kreon_device::Device;
use kreon_engine::{Engine, Examined, Superblock};
use kreon_replica::equalise::{LogGap, extent_of, repair_slots, ship_gap};
use kreon_sim::{Dice, Image, Keep, SimDevice};
use kreon_wire::{Kind, Term};

use super::backup::{Moment, member};
use super::compare::seam;
use super::pair::{Manner, Pair, Ran, device};
use super::stream_cuts::{base, first_life};
use crate::check::{After, check};
use crate::content::Content;
use crate::counts::Counts;
use crate::model::Model;
use crate::progress::Progress;
use crate::script::{Shape, Step, script};

/// Of each first life so many pairs of cuts are tried.
const CUTS: u64 = 4;

/// Of each second life so many moments.
const LATER_CUTS: u64 = 8;

/// Checkpoints of the second life.
const CHECKPOINTS: usize = 3;

/// Tries cuts of the script of `seed`.
pub fn double_cuts(seed: u64) -> Counts {
    let started = Instant::now();
    let mut counts = Counts::default();
    // A store must be there before.
    let seed = seed * 4 + 1 + seed % 3;
    match base(seed).and_then(|base| first_life(seed, base)) {
        Ok(ran) => {
            counts.note("scripts");
            let mut dice = Dice::new(seed ^ 0xd0b1);
            for _ in 0..CUTS {
                let roll = dice.roll();
                if let Err(what) = pair_of_cuts(&ran, 0, roll, &mut counts) {
                    counts.fail(format!("double-cuts --seed {seed}, roll {roll}: {what}"));
                }
            }
        }
        Err(what) => counts.fail(format!("double-cuts --seed {seed}: {what}")),
    }
    counts.elapsed = started.elapsed();
    counts
}

/// Two volumes after the power came back.
struct Survivors {
    winner: Arc<SimDevice>,
    loser: Arc<SimDevice>,
    /// What both must and may hold.
    progress: Progress,
}

/// Cuts both when the backup has received more than `behind` packets, and goes on.
pub(super) fn pair_of_cuts(
    ran: &Ran,
    behind: usize,
    roll: u64,
    counts: &mut Counts,
) -> Result<(), String> {
    let mut dice = Dice::new(roll);
    let survivors = survivors(ran, behind, &mut dice);
    counts.count("pair of cuts");
    let ends = (examine(&survivors.winner)?, examine(&survivors.loser)?);
    let chosen = chosen(&ends, &mut dice);
    let winner = repair(&survivors.winner, &chosen)?;
    let loser = repair(&survivors.loser, &chosen)?;
    let content = content_of(&survivors, ran)?;
    let gap = LogGap::between(&winner, loser.log_end);
    counts.note(match (gap.is_empty(), loser.log_end > winner.log_end) {
        (false, _) => "the loser lacks log",
        (true, true) => "the loser has more log",
        (true, false) => "the ends are the same",
    });
    let pair = Pair {
        primary: Arc::clone(&survivors.winner),
        backup: Arc::clone(&survivors.loser),
        term: Term(chosen.incarnation.0 + 1 + dice.below(3)),
        log_durable: loser.log_end.min(winner.log_end),
        seams: vec![seam(winner.log_end)],
        content,
    };
    let below = Arc::clone(&pair.primary);
    let before = |mirror: &kreon_replica::mirror::Mirror| {
        ship_gap(mirror, member(), &*below, &gap)?;
        mirror.barrier()
    };
    let steps = later_steps(&pair.content, dice.roll());
    let manner = Manner {
        seed: dice.roll(),
        has_tap: false,
    };
    let later = pair.run(&steps, manner, before)?;
    for _ in 0..LATER_CUTS {
        counts.count("loser opened");
        later_cut((&ran.model, survivors.progress), &later, &mut dice)?;
    }
    Ok(())
}

/// Cuts the power of both, at one time: the primary may have sent packets that had not arrived.
fn survivors(ran: &Ran, behind: usize, dice: &mut Dice) -> Survivors {
    let arrived = moment_of(&ran.moments, behind, dice);
    let moment = ran.moments.get(arrived - 1);
    let (sent_at, arrived_at) = moment.map_or((0, 0), |m| (m.primary_events, m.events));
    let sent = ran
        .moments
        .iter()
        .take_while(|m| m.sent_at <= sent_at)
        .count();
    let one = survivor(&ran.devices.0, sent_at, dice);
    let other = survivor(&ran.devices.1, arrived_at, dice);
    let progress = ran.progress_between(arrived, sent.max(arrived) + 1);
    let (winner, loser) = match dice.below(2) {
        0 => (one, other),
        _ => (other, one),
    };
    Survivors {
        winner,
        loser,
        progress,
    }
}

/// How many packets have arrived: any number above `behind`, or the last one is a flush. Then what was written before it, a
/// superblock perhaps, is durable on both, on either one or on none.
fn moment_of(moments: &[Moment], behind: usize, dice: &mut Dice) -> usize {
    let is_flush = |index: &usize| moments.get(*index).is_some_and(|m| m.kind == Kind::Flush);
    let flushes: Vec<usize> = (behind..moments.len()).filter(is_flush).collect();
    match (dice.below(2), flushes.len() as u64) {
        (0, some @ 1..) => 1 + flushes[dice.below(some) as usize],
        _ => 1 + behind + dice.below((moments.len() - behind) as u64) as usize,
    }
}

fn survivor(cut: &Arc<SimDevice>, events: usize, dice: &mut Dice) -> Arc<SimDevice> {
    let seed = dice.roll();
    let mut keep = match dice.below(4) {
        0 => Keep::Nothing,
        1 => Keep::All,
        2 => Keep::SomeWrites { seed },
        _ => Keep::SomeSectors { seed },
    };
    let history = cut.history();
    device(history.crash_after(events).image(&mut keep), true)
}

/// The higher superblock, or that of the winner: both were durable where they are, and what each needs is so on both.
fn chosen((winner, loser): &(Examined, Examined), dice: &mut Dice) -> Superblock {
    let is_lower = extent_of(winner).slot < extent_of(loser).slot;
    match is_lower && dice.below(2) == 0 {
        true => loser.superblock,
        false => winner.superblock,
    }
}

pub(super) fn examine(device: &Arc<SimDevice>) -> Result<Examined, String> {
    let device = Arc::clone(device) as Arc<dyn Device>;
    Engine::examine(&device).map_err(|error| format!("examine: {error}"))
}

pub(super) fn repair(device: &Arc<SimDevice>, chosen: &Superblock) -> Result<Examined, String> {
    let said = |error: Error| format!("the slots: {error}");
    repair_slots(&**device, chosen).map_err(said)?;
    examine(device)
}

/// What the winner holds: within the bounds.
fn content_of(survivors: &Survivors, ran: &Ran) -> Result<Content, String> {
    let image = survivors.winner.image();
    let found = check(image, &ran.model, survivors.progress, After::Nothing, false);
    found
        .map(|recovered| recovered.content)
        .map_err(|what| format!("the winner: {what}"))
}

/// Writes, and checkpoints between them.
pub(super) fn later_steps(content: &Content, seed: u64) -> Vec<Step> {
    let regions: Vec<_> = content.keys().cloned().collect();
    let shape = Shape {
        giants_max: 0,
        ..Shape::of(seed, 4)
    };
    let mut steps = Vec::new();
    let mut known = regions;
    for round in 0..CHECKPOINTS as u64 {
        let some = script(seed.wrapping_add(round), shape, &known);
        // Regions that a round makes or drops are not those that the next one knows.
        let is_write = |step: &Step| matches!(step, Step::Write(..) | Step::Sync | Step::Image);
        if known.is_empty() {
            known.push("later".to_owned());
            steps.push(Step::Create("later".to_owned()));
        }
        steps.extend(some.into_iter().filter(is_write));
        steps.push(Step::Checkpoint);
    }
    steps
}

/// Cuts the power of the loser at a moment of its second life, as often as not one of the opening, and opens it.
pub(super) fn later_cut(
    first: (&Model, Progress),
    later: &Ran,
    dice: &mut Dice,
) -> Result<(), String> {
    let opened_at = later.marks.first().map_or(0, |mark| mark.packets);
    let packets = match dice.below(2) {
        0 => later.moments.len().min(opened_at.max(1)),
        _ => later.moments.len(),
    };
    let packets = 1 + dice.below(packets as u64) as usize;
    let Some(moment) = later.moments.get(packets - 1) else {
        return Err("a second life without packets".to_owned());
    };
    let history = later.devices.1.history();
    let seed = dice.roll();
    let mut keep = match dice.below(3) {
        0 => Keep::Nothing,
        1 => Keep::SomeWrites { seed },
        _ => Keep::SomeSectors { seed },
    };
    let image: Image = history.crash_after(moment.events).image(&mut keep);
    let progress = later.progress(packets, false);
    let judged = check(
        image.clone(),
        &later.model,
        progress,
        After::Checkpoint,
        false,
    );
    let outcome = match judged {
        // Until the first checkpoint of the term counts, it is what it was, with what log it had.
        Err(_) if packets <= opened_at => check(image, first.0, first.1, After::Checkpoint, false),
        judged => judged,
    };
    let told = |what| {
        format!("the loser after packet {packets} of {opened_at} of the opening, {keep:?}: {what}")
    };
    outcome.map(drop).map_err(told)
}
