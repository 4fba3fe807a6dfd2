//! Reads what is on a device.

use std::collections::BTreeSet;

use kreon_base::{Error, Result};
use kreon_device::{AlignedBuf, Device};

use super::volume::extents_of;
use crate::format::{
    EXTENT_BYTES, EXTENT_HEADER_BYTES, ExtentHeader, ExtentNo, FoundExtent, ItemSeal, SectorBytes,
};
use crate::partition::Recovery;
use crate::space::FoundExtents;

/// Reads the extents before `end` into the partitions that own them.
pub fn read_extents(
    device: &dyn Device,
    seal: ItemSeal,
    end: u32,
    recoveries: &mut [Recovery],
) -> Result<FoundExtents> {
    let count = extents_of(device).min(end);
    let mut found = FoundExtents {
        end: 1,
        ..FoundExtents::default()
    };
    let mut bytes = AlignedBuf::new(EXTENT_BYTES);
    let mut blank = BTreeSet::new();
    for extent in (1..count).map(ExtentNo) {
        if device.is_blank(extent.offset(), EXTENT_BYTES as u64) {
            blank.insert(extent);
            continue;
        }
        device.read_at(extent.offset(), &mut bytes)?;
        let Some(sector) = bytes.first_chunk::<EXTENT_HEADER_BYTES>() else {
            continue;
        };
        match decode_header(sector, seal, extent)? {
            None => {
                blank.insert(extent);
            }
            Some(header) => {
                found.end = extent.0 + 1;
                found.sequence = found.sequence.max(header.sequence);
                let partition = recoveries.get_mut(usize::from(header.partition));
                let unknown = || Error::corruption(format!("{extent} belongs to no partition"));
                partition.ok_or_else(unknown)?.take_in(&header, &bytes)?;
            }
        }
    }
    blank.retain(|extent| extent.0 < found.end);
    found.free = blank;
    Ok(found)
}

fn decode_header(
    sector: &SectorBytes,
    seal: ItemSeal,
    extent: ExtentNo,
) -> Result<Option<ExtentHeader>> {
    match ExtentHeader::decode(sector, seal.store, extent) {
        FoundExtent::Blank => Ok(None),
        FoundExtent::Bad(error) => Err(error),
        FoundExtent::Header(header) => Ok(Some(header)),
    }
}
