//! A member joins a primary that goes on with its script: its volume is copied a little after each step. Until it is complete
//! a power cut leaves no store; from then on, all that was acknowledged.

use std::sync::Arc;
use std::time::{Duration, Instant};

use kreon_base::{ErrorKind, Lsn};
use kreon_device::{AlignedBuf, Device};
use kreon_engine::Engine;
use kreon_replica::follower::Follower;
use kreon_replica::mirror::{Mirror, MirrorDevice};
use kreon_sim::{Call, Dice, Image, Keep, SimDevice, SimOptions};
use kreon_wire::{Frame, Outlet, Role, StreamPacket, Term};

use super::backup::{Backup, GROUP, Pace, capacity, member, room, step};
use super::double_cuts::pair_of_cuts;
use super::joiner::{Behind, Joiner, Outcome, Trouble};
use super::longer_logs::put;
use super::pair::{Manner, Pair, Ran, device};
use super::sealed::seal;
use super::spread::spread;
use super::stream_cuts::{base, steps};
use crate::check::{After, check};
use crate::content::Content;
use crate::counts::Counts;
use crate::progress::progress_at;
use crate::script::Step;

/// Of a script's packets so many are cuts, at least.
const CUTS: u64 = 30;

const TERM: Term = Term(6);

/// Moments at which both lose their power.
const BOTH_CUTS: u64 = 3;

/// The same while the log that the joiner lacks has left the primary's memory.
const BEHIND_CUTS: u64 = 2;

/// Longest values that are written while a joiner takes nothing: some segments of log.
const STALLED_BYTES_MAX: u64 = 400_000;

/// Of the join after that so many packets are cuts.
const LATER_CUTS: u64 = 6;

/// Tries a join under the script of `seed`, and power cuts before, during and after it. By the seed the joiner is slow, or
/// dies a few times.
pub fn joins(seed: u64) -> Counts {
    let started = Instant::now();
    let trouble = Trouble {
        deaths: match seed % 4 {
            1 => 6,
            3 => 3,
            _ => 0,
        },
        is_slow: seed % 4 > 1,
        stalls: match seed % 4 {
            2 => 2,
            3 => 1,
            _ => 0,
        },
    };
    let mut counts = Counts::default();
    counts.count("attach beside a write");
    if let Err(what) = attach_beside_a_write() {
        counts.fail(format!("joins: {what}"));
    }
    counts.count("copy behind a newer page");
    if let Err(what) = copy_behind_a_newer_page() {
        counts.fail(format!("joins: {what}"));
    }
    // A store must be there before: the joiner has something to copy.
    let seed = seed * 4 + 1 + seed % 3;
    if let Err(what) = joined_and_cut(seed, trouble, &mut counts) {
        counts.fail(format!("joins --seed {seed}, {trouble:?}: {what}"));
    }
    counts.elapsed = started.elapsed();
    counts
}

fn joined_and_cut(seed: u64, trouble: Trouble, counts: &mut Counts) -> Result<(), String> {
    let (image, content, _) = base(seed)?;
    let (ran, outcome) = joined(seed, (image, content), (Image::default(), TERM), trouble)?;
    counts.note("scripts");
    for _ in 0..outcome.died {
        counts.note("joiners that died");
    }
    for _ in 0..outcome.too_slow {
        counts.note("joiners that were too slow");
    }
    match outcome.was_behind {
        true => counts.note("joins whose log left memory"),
        false if trouble.stalls > 0 && outcome.died == 0 => {
            return Err("the log of a joiner that took nothing stayed in memory".to_owned());
        }
        false => {}
    }
    let mut dice = Dice::new(seed ^ 0x0107);
    cuts(&ran, &outcome, CUTS, &mut dice, counts)?;
    for _ in 0..BOTH_CUTS {
        both_cut(&ran, &outcome, (seed, None), &mut dice, counts)?;
    }
    for _ in 0..BEHIND_CUTS.min(outcome.behind.len() as u64) {
        let behind = outcome.behind[dice.below(outcome.behind.len() as u64) as usize];
        counts.count("cut while its log was behind");
        cut(&ran, behind.packets, false, &mut dice)
            .map_err(|what| format!("behind, packet {}: {what}", behind.packets))?;
        both_cut(&ran, &outcome, (seed, Some(behind)), &mut dice, counts)?;
    }
    Ok(())
}

/// Cuts the power of the joiner at so many moments, at least.
fn cuts(
    ran: &Ran,
    outcome: &Outcome,
    least: u64,
    dice: &mut Dice,
    counts: &mut Counts,
) -> Result<(), String> {
    for index in spread(ran.moments.len(), least, dice) {
        let packets = index + 1;
        let is_complete = outcome.is_complete(packets)?;
        counts.count(if is_complete { "complete" } else { "joining" });
        cut(ran, packets, is_complete, dice).map_err(|what| format!("packet {packets}: {what}"))?;
    }
    Ok(())
}

/// Cuts the power of the primary and the joiner at one time, at any packet or while the joiner was `behind`. If the joiner was complete, either goes on. If not, the primary
/// does, alone, and has all that was durable on it; the joiner begins anew, on what is left of its file.
fn both_cut(
    ran: &Ran,
    outcome: &Outcome,
    (seed, behind): (u64, Option<Behind>),
    dice: &mut Dice,
    counts: &mut Counts,
) -> Result<(), String> {
    let packets = match behind {
        Some(behind) => behind.packets,
        None => 1 + dice.below(ran.moments.len() as u64) as usize,
    };
    let Some(moment) = ran.moments.get(packets - 1) else {
        return Ok(());
    };
    let events = behind.map_or(moment.sent_at, |behind| behind.events);
    if outcome.is_complete(packets)? {
        let roll = dice.roll();
        let complete_from = outcome.complete_from.unwrap_or_default();
        return pair_of_cuts(ran, complete_from, roll, counts)
            .map_err(|what| format!("both cut, roll {roll}: {what}"));
    }
    counts.count("both cut while joining");
    let left = |device: &Arc<SimDevice>, events: usize, dice: &mut Dice| {
        let seed = dice.roll();
        let history = device.history();
        history
            .crash_after(events)
            .image(&mut Keep::SomeSectors { seed })
    };
    let primary = left(&ran.devices.0, events, dice);
    let joiner = left(&ran.devices.1, moment.events, dice);
    let progress = progress_at(&ran.timeline, events);
    let told = |what| format!("both cut at packet {packets}, the primary: {what}");
    let found = check(primary.clone(), &ran.model, progress, After::Nothing, false);
    let content = found.map_err(told)?.content;
    let told = |what| format!("both cut at packet {packets}, then: {what}");
    let again = (joiner, Term(TERM.0 + 1 + dice.below(3)));
    let (later, outcome) =
        joined(!seed, (primary, content), again, Trouble::default()).map_err(told)?;
    cuts(&later, &outcome, LATER_CUTS, dice, counts).map_err(told)
}

/// Carries out the script of a seed on what is there, in `term`, and joins a member whose file holds `joiner`.
fn joined(
    seed: u64,
    (image, content): (Image, Content),
    (joiner, term): (Image, Term),
    trouble: Trouble,
) -> Result<(Ran, Outcome), String> {
    let primary = device(image, true);
    let joiner = Joiner::new(joiner, &primary, term, (trouble, seed))?;
    let pair = Pair {
        primary,
        backup: Arc::clone(&joiner.current.lock().device),
        term,
        log_durable: Lsn::MAX,
        seams: Vec::new(),
        content,
    };
    let mirror = Mirror::new(GROUP, term, Lsn::MAX);
    let (current, outcome) = (Arc::clone(&joiner.current), Arc::clone(&joiner.outcome));
    let beside = joiner.beside(&mirror);
    let manner = Manner {
        seed,
        has_tap: trouble.is_slow,
    };
    let mut steps = steps(seed, &pair.content, manner.has_tap);
    if trouble.stalls > 0 {
        fill_stalls(&mut steps, trouble, &mut Dice::new(seed ^ 0x57a1));
    }
    let ran = pair.run_alone(&steps, manner, &current, (&mirror, beside))?;
    let outcome = std::mem::take(&mut *outcome.lock());
    Ok((ran, outcome))
}

/// Adds writes that fill some segments of log behind the steps after which a joiner is attached.
fn fill_stalls(steps: &mut Vec<Step>, trouble: Trouble, dice: &mut Dice) {
    let region = "stalled".to_owned();
    let puts = (0..trouble.stalled_steps()).map(|_| put(&region, STALLED_BYTES_MAX, dice));
    let mut more = vec![Step::Create(region.clone())];
    more.extend(puts);
    let at = steps.len().min(8);
    steps.splice(at..at, more);
}

fn cut(ran: &Ran, packets: usize, is_complete: bool, dice: &mut Dice) -> Result<(), String> {
    let Some(moment) = ran.moments.get(packets - 1) else {
        return Ok(());
    };
    let seed = dice.roll();
    let mut keep = match dice.below(2) {
        0 => Keep::SomeWrites { seed },
        _ => Keep::SomeSectors { seed },
    };
    let history = ran.devices.1.history();
    let image = history.crash_after(moment.events).image(&mut keep);
    let progress = ran.progress(packets, false);
    let is_store = has_store(&image)?;
    match (is_store, is_complete) {
        (false, true) => return Err(format!("no store is left, {keep:?}")),
        (false, false) => return Ok(()),
        (true, _) => check(image, &ran.model, progress, After::Checkpoint, false)
            .map(drop)
            .map_err(|what| format!("power cut, {keep:?}: {what}"))?,
    }
    if !is_complete {
        return Ok(());
    }
    let progress = ran.progress(packets, true);
    let sealed = check(seal(moment)?, &ran.model, progress, After::Nothing, false);
    sealed.map(drop).map_err(|what| format!("sealed: {what}"))
}

/// A member is attached while a write is under way, which it does not get: what is listed then must have it.
fn attach_beside_a_write() -> Result<(), String> {
    let said = |error: kreon_base::Error| error.to_string();
    let options = SimOptions {
        write_time: Duration::from_millis(25),
        ..SimOptions::default()
    };
    let below = Arc::new(SimDevice::new(options));
    below.grow(1 << 20).map_err(said)?;
    let mirror = Mirror::new(GROUP, TERM, Lsn::MAX);
    let mirrored = MirrorDevice::new(below.clone(), Arc::clone(&mirror));
    let joiner = Backup::join(
        (device(Image::new(1 << 20), true), below.clone()),
        TERM,
        1,
        Pace::usual(),
    );
    // A write is one event when it begins, and one when it has ended.
    let events_begun = below.events() + 1;
    std::thread::scope(|scope| {
        let writing = scope.spawn(|| mirrored.write_at(512 << 10, &AlignedBuf::new(4096)));
        while below.calls(Call::Write) == 0 {
            std::thread::yield_now();
        }
        let attached = mirror.attach(member(), joiner.clone(), room(), below.len_bytes());
        let is_late = below.events() > events_begun;
        writing
            .join()
            .map_err(|_| "a write panicked")?
            .map_err(said)?;
        attached.map_err(said)?;
        match is_late {
            true => Ok(()),
            false => Err("attached while a write was under way".to_owned()),
        }
    })?;
    joiner.end().map(drop)
}

/// A block is read for a copy, then written, and the copy is sent last.
fn copy_behind_a_newer_page() -> Result<(), String> {
    let file = device(Image::new(1 << 20), false);
    let mut follower = Follower::joining((GROUP, TERM), file.len_bytes(), capacity());
    let mut outlet = Outlet::new(GROUP, TERM, Lsn(0), room());
    let (offset, newer, older) = (8192, [2; 4096], [1; 8192]);
    let bytes: &[u8] = &newer;
    let page = StreamPacket::Pages { offset, bytes };
    let bytes: &[u8] = &older;
    let copy = StreamPacket::Copy { offset, bytes };
    for packet in [page, copy] {
        let encoded = outlet.number(&packet).to_vec();
        let frame = Frame::open(&encoded, Role::PeerStream).map_err(|v| v.to_string())?;
        let taken = follower.take(&frame, Instant::now());
        taken.map_err(|violation| violation.to_string())?;
    }
    while step(&mut follower, &*file, Instant::now())? {}
    let found = file.image().bytes(offset, 8192);
    match found[..4096] == newer && found[4096..] == older[4096..] {
        true => Ok(()),
        false => Err("a copy took the place of a newer page".to_owned()),
    }
}

fn has_store(image: &Image) -> Result<bool, String> {
    let device: Arc<dyn Device> = device(image.clone(), false);
    match Engine::examine(&device) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(format!("a superblock that cannot be used: {error}")),
    }
}
