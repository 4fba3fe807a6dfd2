//! The order of the log: of all records of a key the newest is what the tree has. A replay of the log would need that.
//!
//! Only where no power cut has left records of changes that are lost.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use ::tucana::Store;
use ::tucana::format::Superblock;
use kreon_base::{LogOffset, PAGE_BYTES, PageNo, SEGMENT_BYTES, SegmentId};
use kreon_format::{
    Fragment, FragmentSeal, LOG_HEADER_BYTES, LogSegmentHeader, RecordKind, SUPERBLOCK_PAGES,
    StoreId,
};
use kreon_judge::{Version, value};
use kreon_sim::Image;

use crate::watchdog::without_panic;

/// Threads that race.
const RACERS: u64 = 2;

/// Has threads write each of the keys at the same moment, and puts a commit before some of these: so records come to leaves in
/// another order than to the log. Returns a version above those that it used.
///
/// # Errors
/// A call failed.
pub(super) fn race(store: &Store, keys: &[Vec<u8>], version: Version) -> Result<Version, String> {
    // A deletion of what is not there leaves no record.
    let first = value::encode(version, 20);
    let all = keys
        .iter()
        .try_for_each(|key| store.put(key, &first).map(drop));
    all.map_err(|error| format!("a write before a race failed: {error}"))?;
    let version = version + 1;
    let arrived = AtomicU64::new(0);
    let racer = |racer: u64| -> Result<(), String> {
        for (number, key) in (0..).zip(keys) {
            if racer == 0 && number % 2 == 0 {
                let committed = store.commit();
                committed.map_err(|error| format!("a commit in a race failed: {error}"))?;
            }
            arrived.fetch_add(1, SeqCst);
            while arrived.load(SeqCst) < (number + 1) * RACERS {
                std::thread::yield_now();
            }
            let value = value::encode(version + number * RACERS + racer, 20);
            let outcome = match (number + racer) % 5 {
                0 => store.delete(key),
                _ => store.put(key, &value),
            };
            outcome.map_err(|error| format!("a write in a race failed: {error}"))?;
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let (racer, arrived) = (&racer, &arrived);
        let racers: Vec<_> = (0..RACERS)
            .map(|number| {
                scope.spawn(move || {
                    // The others do not wait for one that has failed.
                    without_panic(|| racer(number)).inspect_err(|_| {
                        arrived.fetch_add(u64::MAX / 2, SeqCst);
                    })
                })
            })
            .collect();
        let mut ends = racers.into_iter().map(|it| it.join());
        ends.try_for_each(|end| end.unwrap_or_else(|_| Err("PANIC of a racer".into())))
    })?;
    Ok(version + keys.len() as Version * RACERS)
}

/// Keys with the values that their newest records say.
pub(super) type Newest = BTreeMap<Vec<u8>, Vec<u8>>;

/// What the log on a device says of all keys.
///
/// # Errors
/// There is no store.
pub(super) fn newest(image: &Image) -> Result<Newest, String> {
    let store = store_of(image)?;
    let segments = (0..image.len_bytes() / SEGMENT_BYTES).map(|number| SegmentId(number as u32));
    let header = |segment: SegmentId| {
        let page = page_of(image, segment.first_page());
        let header = LogSegmentHeader::decode(&page, store, segment).ok()?;
        Some((header.sequence, segment))
    };
    let log: BTreeMap<u64, SegmentId> = segments.filter_map(header).collect();
    let mut newest = Newest::new();
    for (sequence, segment) in log {
        read(
            image,
            FragmentSeal { store, sequence },
            segment,
            &mut newest,
        );
    }
    Ok(newest)
}

fn page_of(image: &Image, page: PageNo) -> [u8; PAGE_BYTES] {
    let mut bytes = [0; PAGE_BYTES];
    image.read(page.offset_bytes(), &mut bytes);
    bytes
}

fn store_of(image: &Image) -> Result<StoreId, String> {
    let slots = (0..).zip(SUPERBLOCK_PAGES);
    let mut whole =
        slots.filter_map(|(slot, page)| Superblock::decode(&page_of(image, page), slot).ok());
    whole
        .next()
        .map(|superblock| superblock.store)
        .ok_or_else(|| "no superblock is whole".into())
}

/// Takes the records of a segment, one after the other, up to the first place that holds none.
fn read(image: &Image, seal: FragmentSeal, segment: SegmentId, newest: &mut Newest) {
    let bytes = image.bytes(segment.offset_bytes(), SEGMENT_BYTES as usize);
    let mut at = LOG_HEADER_BYTES as usize;
    while at < bytes.len() {
        let offset = LogOffset(segment.offset_bytes() + at as u64);
        let Ok(fragment) = Fragment::decode(&bytes[at..], &seal, offset) else {
            return;
        };
        if let Fragment::Record { header, payload } = fragment
            && let Some((key, value)) = payload.split_at_checked(header.key_bytes as usize)
        {
            match header.kind {
                RecordKind::Put => drop(newest.insert(key.to_vec(), value.to_vec())),
                _ => drop(newest.remove(key)),
            }
        }
        at += fragment.extent_bytes();
    }
}
