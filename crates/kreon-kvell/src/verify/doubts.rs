//! Second looks: each slot in doubt is read by itself, until it is certain what is wrong or that nothing is.

use std::time::Duration;

use kreon_base::Result;

use super::judge::{Verdict, has_entry, judge};
use super::judged::Judged;
use super::reads::Reads;
use super::report::VerifyReport;
use super::volume::Volume;
use crate::format::{Found, ItemKind, Timestamp, decode};
use crate::index::{Location, Spot};
use crate::partition::Parts;
use crate::space::Place;

/// Doubts that are kept: more are settled at once.
const KEPT_MAX: usize = 64 << 10;

/// Looks at a slot that is being changed.
const LOOKS_MAX: usize = 100;

/// Between two of them: writes take about as long.
const PAUSE: Duration = Duration::from_millis(1);

/// A slot that may be damaged.
pub struct Doubt {
    pub partition: u16,
    pub at: Location,
    /// What an entry of the index says of it: as much of the key as stands there, and whether that is all.
    pub entry: Option<(Vec<u8>, bool)>,
}

/// Slots in doubt, and those that are judged.
#[derive(Default)]
pub struct Doubts {
    pub judged: Judged,
    kept: Vec<Doubt>,
}

/// What was seen before a read.
struct Before {
    doubt: Doubt,
    place: Place,
    last: Timestamp,
    is_under_way: bool,
}

/// What comes of a look.
enum Look {
    Over,
    Damaged(String, Option<Vec<u8>>),
    Again,
}

impl Doubts {
    /// Adds a slot in doubt.
    pub fn add(&mut self, doubt: Doubt) {
        self.kept.push(doubt);
    }

    /// Whether it is time to [settle](Self::settle).
    pub fn are_many(&self) -> bool {
        self.kept.len() >= KEPT_MAX
    }

    /// Looks at what is left that was not judged meanwhile, and reports what is damaged.
    pub fn settle(
        &mut self,
        volume: &Volume<'_>,
        reads: &mut Reads,
        report: &mut VerifyReport,
    ) -> Result<()> {
        let mut kept = std::mem::take(&mut self.kept);
        kept.retain(|doubt| !self.judged.has(doubt.at));
        self.look_at(kept, volume, reads, report)
    }

    /// Looks at `doubts` until each is over.
    pub fn look_at(
        &mut self,
        mut doubts: Vec<Doubt>,
        volume: &Volume<'_>,
        reads: &mut Reads,
        report: &mut VerifyReport,
    ) -> Result<()> {
        for look in 0..LOOKS_MAX {
            let is_last = look + 1 == LOOKS_MAX;
            doubts = self.look(doubts, is_last, volume, reads, report)?;
            if doubts.is_empty() {
                return Ok(());
            }
            std::thread::sleep(PAUSE);
        }
        report.busy_slots += doubts.len() as u64;
        Ok(())
    }

    /// One look at each. Those to be looked at again.
    fn look(
        &mut self,
        doubts: Vec<Doubt>,
        is_last: bool,
        volume: &Volume<'_>,
        reads: &mut Reads,
        report: &mut VerifyReport,
    ) -> Result<Vec<Doubt>> {
        let mut before = Vec::new();
        for doubt in doubts {
            let seen = volume.look(doubt.partition, |partition| {
                let parts = partition.parts();
                let place = parts
                    .room
                    .place(doubt.at)
                    .filter(|_| is_there(parts, &doubt));
                place.map(|place| (place, parts.last, parts.cells.is_under_way(place.cell)))
            })?;
            if let Some((place, last, is_under_way)) = seen {
                before.push(Some(Before {
                    doubt,
                    place,
                    last,
                    is_under_way,
                }));
            }
        }
        let places = before.iter().flatten();
        let places: Vec<_> = places.map(Before::cell).collect();
        let mut again = Vec::new();
        reads.run(places, |number, bytes| {
            let Some(seen) = before.get_mut(number).and_then(Option::take) else {
                return Ok(());
            };
            report.bytes += seen.place.cell_bytes as u64;
            match seen.judged(volume, bytes, is_last)? {
                Look::Again => again.push(seen.doubt),
                Look::Over => self.judged.set(seen.doubt.at),
                Look::Damaged(what, key) => {
                    self.judged.set(seen.doubt.at);
                    let key = key.or(seen.doubt.entry.map(|entry| entry.0));
                    report.damaged(seen.doubt.at.offset(), key, what);
                }
            }
            Ok(())
        })?;
        Ok(again)
    }
}

impl Before {
    /// Offset and length of the cell.
    fn cell(&self) -> (u64, usize) {
        let Place {
            slot,
            at,
            cell_bytes,
            ..
        } = self.place;
        (slot.offset - at as u64, cell_bytes)
    }

    /// What comes of the read. `is_last`: there is no further look at a slot whose partition is busy elsewhere.
    fn judged(&self, volume: &Volume<'_>, bytes: Result<&[u8]>, is_last: bool) -> Result<Look> {
        let Self { doubt, place, .. } = self;
        let found = bytes.as_ref().map(|bytes| {
            let content = bytes.get(place.at..).unwrap_or_default();
            let content = content.get(..place.slot.bytes as usize);
            decode(content.unwrap_or_default(), volume.seal, place.slot)
        });
        volume.look(doubt.partition, |partition| {
            let parts = partition.parts();
            if !is_there(parts, doubt) {
                return Look::Over;
            }
            let damage = match &found {
                Err(error) => (format!("cannot be read: {error}"), None),
                Ok(found) => match judge(parts, place.slot, found) {
                    Verdict::Gone => return Look::Over,
                    Verdict::Doubt(what, key) => (what.to_owned(), key),
                    _ => match &doubt.entry {
                        Some(entry) if !is_of(entry, found) => {
                            ("another item than the index says".to_owned(), None)
                        }
                        _ => return Look::Over,
                    },
                },
            };
            let is_under_way = self.is_under_way || parts.cells.is_under_way(place.cell);
            let is_changed = parts.last != self.last && !is_last;
            match is_under_way || is_changed {
                true => Look::Again,
                false => Look::Damaged(damage.0, damage.1),
            }
        })
    }
}

/// Whether the entry is still there that a doubt is about.
fn is_there(parts: &Parts, doubt: &Doubt) -> bool {
    let Some((bytes, whole)) = &doubt.entry else {
        return true;
    };
    let spot = Spot {
        bytes,
        whole: *whole,
        at: Some(doubt.at),
    };
    has_entry(&parts.index, spot)
}

/// Whether a slot has an item of the key that an entry of the index says.
fn is_of((bytes, whole): &(Vec<u8>, bool), found: &Found<'_>) -> bool {
    let Found::Whole(item) = found else {
        return false;
    };
    let is_item = matches!(item.head.kind, ItemKind::Put | ItemKind::Large);
    let is_alike = match whole {
        true => item.key == bytes,
        false => item.key.len() > bytes.len() && item.key.starts_with(bytes),
    };
    is_item && is_alike
}
