//! The one that is chosen has less log than the one that has to follow, by a part of a block, some blocks or a whole segment:
//! nobody was told of the rest. It goes on, and the follower must be what it is, at every moment from then on: none of the
//! rest comes back, neither when the follower is opened after a power cut, nor when it goes on in its turn.

use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use kreon_base::{Error, Lsn};
use kreon_engine::{Durability, Examined};
use kreon_format::place_of;
use kreon_replica::equalise::{LogGap, ship_gap};
use kreon_replica::mirror::Mirror;
use kreon_sim::{Dice, Image, SimDevice};
use kreon_wire::Term;

use super::backup::member;
use super::compare::seam;
use super::double_cuts::{examine, later_cut, later_steps, repair};
use super::pair::{Manner, Pair, Ran, device, settings};
use super::sealed::seal;
use super::stream_cuts::base;
use crate::check::{After, check, said};
use crate::content::Content;
use crate::counts::Counts;
use crate::progress::Progress;
use crate::script::{Change, Lifetime, Step, Value};
use crate::store::Store;

/// Longest values of the part that only one has: with the longer ones it fills more than a segment.
const VALUE_BYTES_MAX: [u64; 3] = [300, 9000, 250_000];

/// Writes that only one has.
const WRITES: u64 = 24;

/// Sectors that a cut leaves.
const SECTOR_BYTES: u64 = 512;

/// Of each second life so many moments.
const LATER_CUTS: u64 = 4;

const MANNER: Manner = Manner {
    seed: 0,
    has_tap: false,
};

/// Tries logs of a seed that were cut at some sectors.
pub fn longer_logs(seed: u64) -> Counts {
    let started = Instant::now();
    let mut counts = Counts::default();
    for value_bytes_max in VALUE_BYTES_MAX {
        let mut dice = Dice::new(seed ^ value_bytes_max);
        let outcome = longer(seed, value_bytes_max, &mut dice)
            .and_then(|longer| longer.try_cuts(&mut dice, &mut counts));
        if let Err(what) = outcome {
            counts.fail(format!(
                "longer-logs --seed {seed}, values up to {value_bytes_max} bytes: {what}"
            ));
        }
    }
    counts.elapsed = started.elapsed();
    counts
}

/// A store with log that is not durable but for the power having stayed.
struct Longer {
    store: Store,
    /// With all of the log.
    examined: Examined,
    /// Durable up to here.
    durable: Lsn,
    incarnation: u64,
    /// Any prefix of what the rest says may be there.
    progress: Progress,
}

/// Makes it: durable writes, then writes that are on the device without a flush.
fn longer(seed: u64, value_bytes_max: u64, dice: &mut Dice) -> Result<Longer, String> {
    // A store must be there before.
    let (image, content, incarnation) = base(seed * 4 + 1)?;
    let mut store = Store::on(image, &content, true);
    let options = kreon_engine::Options {
        // No spill that nobody asks for makes it durable.
        l0_bytes: Some(1600 << 10),
        unspilled_bytes_min: 64 << 20,
        ..settings(MANNER)
    };
    store = store.with(options);
    store.open().map_err(said("open"))?;
    let region = "longer".to_owned();
    let mut steps = vec![Step::Create(region.clone()), Step::Checkpoint];
    steps.extend((0..3).map(|_| put(&region, 2000, dice)));
    steps.push(Step::Sync);
    carry_out(&mut store, &steps)?;
    let engine = store.shared_engine().map_err(said("open"))?;
    let (durable, progress) = (engine.log_durable(), store.progress);
    let mut steps: Vec<_> = (0..WRITES)
        .map(|_| put(&region, value_bytes_max, dice))
        .collect();
    steps.push(Step::WriteOut);
    carry_out(&mut store, &steps)?;
    if engine.log_durable() != durable {
        return Err("more log is durable than was asked for".to_owned());
    }
    drop(engine);
    let progress = Progress {
        begun_units: store.progress.begun_units,
        ..progress
    };
    store.abandon();
    let examined = examine(&device(store.device.image(), false))?;
    Ok(Longer {
        store,
        examined,
        durable,
        incarnation,
        progress,
    })
}

fn carry_out(store: &mut Store, steps: &[Step]) -> Result<(), String> {
    for step in steps {
        store.step(step)?.map_err(said("a step"))?;
    }
    Ok(())
}

/// A put of one of nine keys.
pub fn put(region: &str, value_bytes_max: u64, dice: &mut Dice) -> Step {
    let change = Change {
        region: region.to_owned(),
        key: format!("key {}", dice.below(9)).into_bytes(),
        value: Some(Value {
            len_bytes: 1 + dice.below(value_bytes_max) as usize,
            seed: dice.roll(),
        }),
        until: None,
        lifetime: Lifetime::Unlimited,
    };
    Step::Write(vec![change], Durability::Buffered)
}

impl Longer {
    /// Cuts of the log: in the block behind what is durable, and anywhere.
    fn try_cuts(&self, dice: &mut Dice, counts: &mut Counts) -> Result<(), String> {
        let rest_bytes = self.examined.log_end.0 - self.durable.0;
        let anywhere = 1 + dice.below(rest_bytes / SECTOR_BYTES);
        for sectors in [0, 1 + dice.below(7), anywhere] {
            let keep_bytes = sectors * SECTOR_BYTES;
            let lost = Lsn(self.durable.0 + keep_bytes)..self.examined.log_end;
            let cut = Cut {
                winner: self.without(&lost),
                loser: self.store.device.image(),
                term: self.incarnation + 2,
            };
            cut.go_on(self, dice, counts)
                .map_err(|what| format!("{keep_bytes} bytes are left: {what}"))?;
        }
        Ok(())
    }

    /// The device with zeroes in a part of the log, up to the end of the last block.
    fn without(&self, lost: &Range<Lsn>) -> Image {
        let mut image = self.store.device.image();
        for (segment, sequence) in &self.examined.log_segments {
            let of_this = |lsn: Lsn| match place_of(lsn) {
                (number, _) if number < *sequence => 0,
                (number, _) if number > *sequence => kreon_base::SEGMENT_BYTES,
                (_, within) => u64::from(within),
            };
            let (from, upto) = (of_this(lost.start), of_this(lost.end));
            let upto = upto.next_multiple_of(kreon_base::PAGE_BYTES as u64);
            image.zero(segment.offset_bytes() + from, upto - from);
        }
        image
    }
}

/// Two volumes, of which the one with less log goes on.
struct Cut {
    winner: Image,
    loser: Image,
    term: u64,
}

impl Cut {
    fn go_on(self, longer: &Longer, dice: &mut Dice, counts: &mut Counts) -> Result<(), String> {
        let first = (&longer.store.model, longer.progress);
        let (winner, loser) = (device(self.winner, true), device(self.loser, true));
        let (shorter, rest) = (examine(&winner)?, examine(&loser)?);
        if shorter.log_end >= rest.log_end {
            // The last pad ends with zeroes anyway.
            counts.note("nothing was cut");
            return Ok(());
        }
        counts.note(
            match place_of(shorter.log_end).0 == place_of(rest.log_end).0 {
                true => "longer within a segment",
                false => "longer by segments",
            },
        );
        let found = check(winner.image(), first.0, first.1, After::Nothing, false);
        let content = found.map_err(|what| format!("the winner: {what}"))?.content;
        let sides = Sides {
            primary: winner,
            backup: loser,
            term: Term(self.term),
            seams: Vec::new(),
        };
        counts.count("the shorter one goes on");
        let (later, seams) = sides.live(&content, false, dice)?;
        for _ in 0..LATER_CUTS {
            counts.count("the longer one opened");
            later_cut(first, &later, dice)?;
        }
        counts.count("the longer one goes on");
        let last = later.moments.last().ok_or("a life without packets")?;
        let sides = Sides {
            primary: device(seal(last)?, true),
            backup: device(later.devices.0.image(), true),
            term: Term(self.term + 1),
            seams,
        };
        let content = later.model.content(later.model.end());
        sides.live(&content, true, dice).map(drop)
    }
}

struct Sides {
    primary: Arc<SimDevice>,
    backup: Arc<SimDevice>,
    term: Term,
    seams: Vec<Range<Lsn>>,
}

impl Sides {
    /// Makes both equal, and carries out a script; the seams by then. `collects`: records are moved out of what is compared,
    /// and away from where nothing is that counts.
    fn live(
        self,
        content: &Content,
        collects: bool,
        dice: &mut Dice,
    ) -> Result<(Ran, Vec<Range<Lsn>>), String> {
        let chosen = examine(&self.primary)?.superblock;
        let winner = repair(&self.primary, &chosen)?;
        let loser = repair(&self.backup, &chosen)?;
        let gap = LogGap::between(&winner, loser.log_end);
        let mut seams = self.seams;
        seams.push(seam(winner.log_end));
        let below = Arc::clone(&self.primary);
        let before = |mirror: &Mirror| -> Result<(), Error> {
            ship_gap(mirror, member(), &*below, &gap)?;
            mirror.barrier()
        };
        let mut steps = later_steps(content, dice.roll());
        if collects {
            steps.extend([Step::Collect, Step::Checkpoint, Step::Read]);
        }
        let pair = Pair {
            primary: self.primary,
            backup: self.backup,
            term: self.term,
            log_durable: loser.log_end.min(winner.log_end),
            seams: seams.clone(),
            content: content.clone(),
        };
        let manner = Manner {
            seed: dice.roll(),
            ..MANNER
        };
        pair.run(&steps, manner, before).map(|ran| (ran, seams))
    }
}
