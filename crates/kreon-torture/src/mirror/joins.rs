//! A member joins a primary that goes on with its script: its volume is copied a little after each step. Until it is complete
//! a power cut leaves no store; from then on, all that was acknowledged.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use kreon_base::{ErrorKind, Lsn};
use kreon_device::{AlignedBuf, Device};
use kreon_engine::Engine;
use kreon_replica::follower::Follower;
use kreon_replica::mirror::{Mirror, MirrorDevice};
use kreon_replica::resync::{Resync, blank_slots};
use kreon_sim::{Call, Dice, Image, Keep, SimDevice, SimOptions};
use kreon_wire::{Frame, Outlet, Role, StreamPacket, Term};
use parking_lot::Mutex;

use super::backup::{Backup, GROUP, capacity, member, room, seal, step};
use super::pair::{Beside, Manner, Pair, Ran, device};
use super::stream_cuts::{base, steps};
use crate::check::{After, check};
use crate::counts::Counts;

/// Of a script's packets about so many are cuts.
const CUTS: u64 = 30;

const TERM: Term = Term(6);

/// Tries a join under the script of `seed`, and power cuts before, during and after it.
pub fn joins(seed: u64) -> Counts {
    let started = Instant::now();
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
    match joined(seed) {
        Ok((ran, complete_from)) => {
            counts.note("scripts");
            let mut dice = Dice::new(seed ^ 0x0107);
            let stride = (ran.moments.len() as u64 / CUTS).max(1);
            for packets in 1..=ran.moments.len() {
                if dice.below(stride) == 0 {
                    let is_complete = packets > complete_from;
                    counts.count(if is_complete { "complete" } else { "joining" });
                    if let Err(what) = cut(&ran, packets, is_complete, &mut dice) {
                        counts.fail(format!("joins --seed {seed}, packet {packets}: {what}"));
                    }
                }
            }
        }
        Err(what) => counts.fail(format!("joins --seed {seed}: {what}")),
    }
    counts.elapsed = started.elapsed();
    counts
}

/// What is known of the join.
#[derive(Default)]
struct Join {
    steps: u64,
    resync: Option<Resync>,
    /// Packets that the joiner had been sent when it was complete.
    complete_from: Option<usize>,
}

/// Carries out the script; from how many packets on the joiner is complete.
fn joined(seed: u64) -> Result<(Ran, usize), String> {
    let (image, content, _) = base(seed)?;
    let pair = Pair {
        primary: device(image, true),
        backup: device(Image::default(), true),
        term: TERM,
        log_durable: Lsn::MAX,
        content,
    };
    blank_slots(&*pair.backup).map_err(|error| format!("blank: {error}"))?;
    let mirror = Mirror::new(GROUP, TERM, Lsn::MAX);
    let devices = (Arc::clone(&pair.backup), Arc::clone(&pair.primary));
    let joiner = Backup::join(devices, TERM, seed);
    joiner.answer_to(&mirror);
    let join = Arc::new(Mutex::new(Join::default()));
    let below = Arc::clone(&pair.primary) as Arc<dyn Device>;
    let beside = beside(&joiner, &join, below, Dice::new(seed));
    let manner = Manner {
        seed,
        has_tap: false,
    };
    let steps = steps(seed, &pair.content, false);
    let ran = pair.run_alone(&steps, manner, &joiner, (&mirror, beside))?;
    let complete_from = join.lock().complete_from;
    let complete_from = complete_from.ok_or("the join did not end with the script")?;
    Ok((ran, complete_from))
}

/// Attaches the joiner after a few steps and copies a little after each of the next.
fn beside(
    joiner: &Arc<Backup>,
    join: &Arc<Mutex<Join>>,
    below: Arc<dyn Device>,
    mut dice: Dice,
) -> Beside {
    let (joiner, join) = (Arc::clone(joiner), Arc::clone(join));
    let attach_after = 2 + dice.below(5);
    let complete_after = attach_after + 12;
    Box::new(move |engine, mirror| {
        let mut join = join.lock();
        join.steps += 1;
        let said = |error: kreon_base::Error| format!("the join: {error}");
        if join.steps == attach_after {
            let attached = mirror.attach(member(), joiner.clone(), room(), below.len_bytes());
            attached.map_err(said)?;
            let resync = Resync::list(engine, mirror, member()).map_err(said)?;
            resync.reserve(mirror).map_err(said)?;
            join.resync = Some(resync);
        }
        let must_end = join.steps >= complete_after;
        if let Some(resync) = &mut join.resync {
            let mut pieces = 1 + dice.below(12);
            while (must_end || pieces > 0) && resync.copy(mirror, &*below).map_err(said)? {
                pieces = pieces.saturating_sub(1);
            }
        }
        if must_end && let Some(resync) = join.resync.take() {
            resync.complete(engine, mirror, &*below).map_err(said)?;
            let backed = engine.occupied().map_err(said)?.backed;
            let backed_bytes: u64 = backed.iter().map(|(_, bytes)| bytes).sum();
            if joiner.device.space_bytes() < backed_bytes {
                return Err("a joiner lacks space that nobody will ask it for again".to_owned());
            }
            let standing = mirror.standing();
            join.complete_from = standing.first().map(|first| first.sent.0 as usize);
        }
        Ok(())
    })
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
    let joiner = Backup::join((device(Image::new(1 << 20), true), below.clone()), TERM, 1);
    let has_ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writing = scope.spawn(|| {
            let outcome = mirrored.write_at(512 << 10, &AlignedBuf::new(4096));
            has_ended.store(true, Ordering::SeqCst);
            outcome
        });
        while below.calls(Call::Write) == 0 {
            std::thread::yield_now();
        }
        let attached = mirror.attach(member(), joiner.clone(), room(), below.len_bytes());
        let is_late = has_ended.load(Ordering::SeqCst) || below.events() > 2;
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
