//! Superblock slots that show an older content: the device lost what it had said to be durable.
//!
//! If one slot with the newest epoch is left, nothing may be missing. If all are older, the store may
//! refuse to open or to read, or be right all the same; what it must not do is lose acknowledged
//! writes without a word. Two things it cannot know, because only the catalogue tells them: that the last change of
//! regions was undone, or the last load, whose records a replay passes over.

use kreon_base::{ErrorKind, PAGE_BYTES};
use kreon_format::{SUPERBLOCK_PAGES, Superblock};
use kreon_sim::{Content as Written, Dice, Event, History, Image, Keep};

use crate::content;
use crate::model::Model;
use crate::plan::Choice;
use crate::progress::Progress;
use crate::settings::options_of_check;
use crate::store::Store;

/// Which slots, and how old.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stale {
    /// A bit for each slot.
    pub slots: u8,
    /// How many contents of the slot lie between the one that shows and the newest one.
    pub back: usize,
}

/// The contents that each slot had, in order.
#[derive(Default)]
pub struct Slots([Vec<(usize, Vec<u8>)>; 4]);

impl Slots {
    /// Those of a history, with the events that began them.
    pub fn of(history: &History) -> Self {
        let mut slots = Self::default();
        for (place, page) in slots.0.iter_mut().zip(SUPERBLOCK_PAGES) {
            place.push((0, history.start.bytes(page.offset_bytes(), PAGE_BYTES)));
            for (number, event) in history.events.iter().enumerate() {
                if let Event::WriteBegan {
                    offset,
                    content: Written::Bytes(bytes),
                    ..
                } = event
                    && *offset == page.offset_bytes()
                {
                    place.push((number + 1, bytes.to_vec()));
                }
            }
        }
        slots
    }

    /// Changes `image`, which a power cut after `events` events left.
    fn put_back(&self, stale: Stale, events: usize, image: &mut Image) {
        let places = self.0.iter().zip(SUPERBLOCK_PAGES).enumerate();
        for (slot, (contents, page)) in places.filter(|(slot, _)| stale.slots >> slot & 1 == 1) {
            let epoch_now = epoch(image, slot);
            // Contents before the one that stands there, newest first. A blank slot is none: four of
            // them are a new volume, and nobody can tell.
            let older = contents.iter().rev().filter(|(began, bytes)| {
                *began <= events && (1..epoch_now).contains(&epoch_of(bytes, slot))
            });
            let older: Vec<_> = older.collect();
            if let Some((_, bytes)) = older.get(stale.back).or(older.last()) {
                image.write(page.offset_bytes(), bytes);
            }
        }
    }
}

fn epoch_of(bytes: &[u8], slot: usize) -> u64 {
    let superblock = bytes.try_into().ok().map(|b| Superblock::decode(b, slot));
    superblock
        .and_then(Result::ok)
        .map_or(0, |found| found.epoch.0)
}

fn epoch(image: &Image, slot: usize) -> u64 {
    let page = SUPERBLOCK_PAGES.get(slot).copied().unwrap_or_default();
    epoch_of(&image.bytes(page.offset_bytes(), PAGE_BYTES), slot)
}

fn newest(image: &Image) -> u64 {
    (0..SUPERBLOCK_PAGES.len())
        .map(|slot| epoch(image, slot))
        .max()
        .unwrap_or(0)
}

/// What is tried at one power cut: every set of slots one content back, and some further back.
pub fn choices(dice: &mut Dice) -> Vec<Choice> {
    let sets = (1..16u8).map(|slots| (slots, 0));
    let further = [(15, 1), (15, 2), (15, 3), (15, 4 + dice.below(9) as usize)];
    let single = (1 << dice.below(4), 1 + dice.below(6) as usize);
    let all = sets.chain(further).chain([single]);
    let choice = |(slots, back): (u8, usize)| Choice {
        class: match slots.count_ones() {
            1 => "stale slot",
            2 => "two stale slots",
            3 => "three stale slots",
            _ => "four stale slots",
        },
        keep: Keep::All,
        stale: Some(Stale { slots, back }),
    };
    all.map(choice).collect()
}

/// What came of a put-back.
pub enum Outcome {
    /// The newest state was still told by a slot: the image is to be checked as any other.
    Newest(Image),
    /// All slots were old, and it went well: this is how.
    Old(&'static str),
}

/// Puts slots back in `image` and judges what cannot be judged as usual.
///
/// # Errors
/// What is wrong.
pub fn judge(
    slots: &Slots,
    stale: Stale,
    events: usize,
    mut image: Image,
    model: &Model,
    progress: Progress,
) -> Result<Outcome, String> {
    let before = newest(&image);
    slots.put_back(stale, events, &mut image);
    let after = newest(&image);
    if after == before {
        return Ok(Outcome::Newest(image));
    }
    let mut store = Store::on(image, &content::Content::new(), false).with(options_of_check());
    let found = store.open().and_then(content::read);
    let found = match found {
        Ok(found) => found,
        Err(error) if error.kind() == ErrorKind::Corruption => return Ok(Outcome::Old("refused")),
        Err(error) => return Err(format!("epoch {after} for {before}: {error}")),
    };
    let units = progress.durable_units..=progress.begun_units;
    let changes = progress.durable_region_changes..=progress.begun_region_changes;
    if model
        .find_in_any_order(&found, units.clone(), changes)
        .is_some()
    {
        return Ok(Outcome::Old("right all the same"));
    }
    let most = progress.begun_region_changes;
    if model
        .find_in_any_order(&found, units.clone(), 0..=most)
        .is_some()
    {
        return Ok(Outcome::Old("a change of regions undone"));
    }
    if model.lacks_loads(&found, units, 0..=most) {
        return Ok(Outcome::Old("a load undone"));
    }
    let any = model.find_in_any_order(
        &found,
        0..=model.end().units,
        0..=model.end().region_changes,
    );
    Err(format!(
        "epoch {after} for {before}: opened without a word, with {any:?} of {progress:?}"
    ))
}
