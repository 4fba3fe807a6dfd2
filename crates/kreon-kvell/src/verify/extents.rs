//! The pass over the extents: headers, and what slots hold.

use std::collections::BTreeMap;

use kreon_base::Result;

use super::doubts::{Doubt, Doubts};
use super::judge::{Verdict, judge};
use super::reads::Reads;
use super::report::VerifyReport;
use super::volume::Volume;
use crate::format::{
    ClassNo, EXTENT_BYTES, EXTENT_HEADER_BYTES, ExtentHeader, ExtentNo, Found, FoundExtent, Slot,
    decode,
};
use crate::index::Location;

/// Slots judged under one lock: about as much work as a few requests are.
const TOGETHER: usize = 128;

/// Looks at the header of an extent that others may just have taken or given back.
const LOOKS_MAX: usize = 3;

/// An extent in use.
#[derive(Clone, Copy)]
struct Owned {
    extent: ExtentNo,
    partition: u16,
    class: ClassNo,
}

/// Reads all extents that are in use now, and the headers of those that are not.
pub fn verify(
    volume: &Volume<'_>,
    reads: &mut Reads,
    doubts: &mut Doubts,
    report: &mut VerifyReport,
) -> Result<()> {
    let owned = owned(volume)?;
    let all: Vec<Owned> = owned.values().copied().collect();
    let mut bad = Vec::new();
    let places = all.iter().map(|it| (it.extent.offset(), EXTENT_BYTES));
    reads.run(places, |number, bytes| {
        let Some(&owned) = all.get(number) else {
            return Ok(());
        };
        report.extents += 1;
        if let Some(class) = volume.classes.get(owned.class) {
            doubts.judged.add(owned.extent, class);
        }
        match bytes {
            Ok(bytes) => {
                report.bytes += bytes.len() as u64;
                if !is_header_of(volume, bytes, owned) {
                    bad.push(owned);
                }
                slots(volume, owned, bytes, doubts, report)
            }
            Err(_) => {
                bad.push(owned);
                Ok(())
            }
        }
    })?;
    for owned in bad {
        look_again(volume, owned, reads, doubts, report)?;
        if doubts.are_many() {
            doubts.settle(volume, reads, report)?;
        }
    }
    for extent in (1..volume.extents_end.0).map(ExtentNo) {
        if !owned.contains_key(&extent) {
            unused(volume, extent, reads, report)?;
        }
    }
    Ok(())
}

fn owned(volume: &Volume<'_>) -> Result<BTreeMap<ExtentNo, Owned>> {
    let mut all = BTreeMap::new();
    for partition in volume.numbers() {
        let extents = volume.look(partition, |it| {
            let extents = it.parts().room.slots().extents();
            extents.map(|it| (it.0, it.1)).collect::<Vec<_>>()
        })?;
        all.extend(extents.into_iter().map(|(extent, class)| {
            let owned = Owned {
                extent,
                partition,
                class,
            };
            (extent, owned)
        }));
    }
    Ok(all)
}

/// Whether an extent belongs to its partition still.
fn is_owned(volume: &Volume<'_>, owned: Owned) -> Result<bool> {
    volume.look(owned.partition, |partition| {
        partition.parts().room.slots().class_of(owned.extent) == Some(owned.class)
    })
}

fn header_in(volume: &Volume<'_>, bytes: &[u8], extent: ExtentNo) -> Option<FoundExtent> {
    let sector = bytes.first_chunk::<EXTENT_HEADER_BYTES>()?;
    let store = volume.seal.store;
    Some(ExtentHeader::decode(sector, store, extent))
}

fn is_header_of(volume: &Volume<'_>, bytes: &[u8], owned: Owned) -> bool {
    let found = header_in(volume, bytes, owned.extent);
    let expected = (owned.partition, owned.class);
    matches!(found, Some(FoundExtent::Header(it)) if (it.partition, it.class) == expected)
}

/// Judges all slots of an extent.
fn slots(
    volume: &Volume<'_>,
    owned: Owned,
    bytes: &[u8],
    doubts: &mut Doubts,
    report: &mut VerifyReport,
) -> Result<()> {
    let Some(class) = volume.classes.get(owned.class) else {
        return Ok(());
    };
    let slots = (0..class.slots_per_extent).filter_map(|number| {
        let slot = volume.classes.slot(owned.extent, owned.class, number)?;
        Some((number as usize, slot))
    });
    let slots: Vec<(usize, Slot)> = slots.collect();
    for slots in slots.chunks(TOGETHER) {
        // What is costly happens without the lock.
        let found = slots.iter().map(|&(number, slot)| {
            let from = (slot.offset - owned.extent.offset()) as usize;
            let content = bytes.get(from..from + slot.bytes as usize);
            let content = content.unwrap_or_default();
            (number, slot, decode(content, volume.seal, slot))
        });
        let found: Vec<_> = found.collect();
        let verdicts = volume.look(owned.partition, |partition| {
            let parts = partition.parts();
            let used = parts.room.slots().bitmap(owned.extent, owned.class);
            let is_free = |number: usize| {
                let word = used.and_then(|used| used.get(number / 64));
                word.is_some_and(|word| word >> (number % 64) & 1 == 0)
            };
            let judged = found.iter().map(|(number, slot, it)| match it {
                // Mostly, and no search.
                Found::Blank if is_free(*number) => Verdict::Free,
                _ => judge(parts, *slot, it),
            });
            judged.collect::<Vec<_>>()
        })?;
        for ((_, slot), verdict) in slots.iter().zip(verdicts) {
            if let Some(at) = Location::new(slot.offset) {
                note(owned.partition, at, &verdict, doubts, report);
            }
        }
    }
    Ok(())
}

fn note(
    partition: u16,
    at: Location,
    verdict: &Verdict,
    doubts: &mut Doubts,
    report: &mut VerifyReport,
) {
    match verdict {
        Verdict::Live(value_bytes) => {
            report.items += 1;
            report.value_bytes += u64::from(*value_bytes);
            doubts.judged.set(at);
        }
        Verdict::Outdated => report.outdated_items += 1,
        Verdict::Tombstone => report.tombstones += 1,
        Verdict::Part => report.parts += 1,
        Verdict::Free | Verdict::Gone => {}
        Verdict::Doubt(..) => doubts.add(Doubt {
            partition,
            at,
            entry: None,
        }),
    }
}

/// Looks again at an extent whose header is not what it should be, or that could not be read.
fn look_again(
    volume: &Volume<'_>,
    owned: Owned,
    reads: &mut Reads,
    doubts: &mut Doubts,
    report: &mut VerifyReport,
) -> Result<()> {
    let offset = owned.extent.offset();
    let mut what = String::new();
    for _ in 0..LOOKS_MAX {
        if !is_owned(volume, owned)? {
            return Ok(());
        }
        match reads.one(offset, EXTENT_BYTES) {
            Ok(bytes) if is_header_of(volume, &bytes, owned) => {
                return slots(volume, owned, &bytes, doubts, report);
            }
            Ok(bytes) => what = told(volume, &bytes, owned.extent),
            Err(error) => {
                what = format!("{} cannot be read whole: {error}", owned.extent);
            }
        }
    }
    if is_owned(volume, owned)? {
        report.damaged(offset, None, what);
    }
    Ok(())
}

fn told(volume: &Volume<'_>, bytes: &[u8], extent: ExtentNo) -> String {
    match header_in(volume, bytes, extent) {
        Some(FoundExtent::Bad(error)) => error.to_string(),
        Some(FoundExtent::Header(_)) => format!("{extent} has the header of another use"),
        Some(FoundExtent::Blank) | None => format!("{extent} has no header"),
    }
}

/// Looks at an extent that nobody has: what is in it must not be found by an opening.
fn unused(
    volume: &Volume<'_>,
    extent: ExtentNo,
    reads: &mut Reads,
    report: &mut VerifyReport,
) -> Result<()> {
    let block_bytes = volume.device.block_bytes() as usize;
    let mut what = String::new();
    for _ in 0..LOOKS_MAX {
        what = match reads.one(extent.offset(), block_bytes.max(EXTENT_HEADER_BYTES)) {
            Err(error) => format!("the header of {extent} cannot be read: {error}"),
            Ok(bytes) => match header_in(volume, &bytes, extent) {
                Some(FoundExtent::Blank) | None => return Ok(()),
                Some(FoundExtent::Bad(error)) => error.to_string(),
                Some(FoundExtent::Header(header)) => {
                    let owned = Owned {
                        extent,
                        partition: header.partition,
                        class: header.class,
                    };
                    // The header of an extent that is taken is written under the lock of its partition.
                    if volume.numbers().contains(&header.partition) && is_owned(volume, owned)? {
                        return Ok(());
                    }
                    format!("{extent} has a header and belongs to nobody")
                }
            },
        };
    }
    report.damaged(extent.offset(), None, what);
    Ok(())
}
