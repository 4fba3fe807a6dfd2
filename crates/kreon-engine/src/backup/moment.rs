//! The state that a backup has: the last checkpoint, and the log behind it as far as it is durable.

use std::collections::BTreeMap;

use kreon_base::{
    Error, LogId, Lsn, PAGE_BYTES, PageBytes, PageNo, Result, SEGMENT_BYTES, SegmentId,
};
use kreon_format::{
    BitmapBlock, Catalogue, LOG_HEADER_BYTES, LogRecord, PagePointer, SegmentKind, Superblock,
    bitmap_page, decode_page, group_first_segment, place_of,
};
use kreon_volume::page_io::read_pages;
use kreon_volume::superblock;

use crate::checkpoint::catalogue::{self, MAIN_LOG};
use crate::level::PagesKept;
use crate::state::Storage;

/// A segment of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogSegment {
    pub id: SegmentId,
    pub log: LogId,
    pub sequence: u64,
    /// The trees of the checkpoint point at records in it.
    pub is_live: bool,
    /// The run that made the state went on at `end` and has written nothing.
    pub ends_at_seam: bool,
    /// Behind the last byte of the state, from the start of the segment. Of moved records: at the most.
    pub end: u32,
    /// A record from here on may be cut by `end`: its rest was not durable. The state ends in front of it.
    pub torn_from: u32,
}

/// A state of the store. While it lives, none of its pages and segments is used for anything else.
pub struct Moment {
    pub superblock: Superblock,
    pub catalogue: Catalogue,
    /// The pages of the catalogue: its chain, and those of regions.
    pub catalogue_pages: Vec<PagePointer>,
    /// The valid copies of the bitmap blocks: the checkpoint after the next one overwrites them, so they are kept here.
    pub bitmap: Vec<(PagePointer, Box<PageBytes>)>,
    /// By place on the volume.
    pub segments: Vec<LogSegment>,
    pub log_end: Lsn,
    _kept: PagesKept,
}

impl Moment {
    /// The state that a crash now would leave, with everything before `acknowledged`, the border of a record. Checkpoints wait
    /// for some reads of the device; nobody else does.
    ///
    /// # Errors
    /// `Corruption` if the catalogue or the bitmap is damaged; `Io`, `Closed`.
    pub fn take(storage: &Storage, acknowledged: Lsn) -> Result<Self> {
        let ledger = storage.ledger.lock();
        storage.check_open()?;
        let device = storage.device.as_ref();
        let (found, _) = superblock::inspect(device)?;
        let superblock = found
            .filter(|found| found.epoch == ledger.epoch && found.store == storage.store)
            .ok_or_else(|| {
                Error::corruption(format!(
                    "no superblock slot is of {}, the last checkpoint",
                    ledger.epoch
                ))
            })?;
        let kept = storage.views.keep_pages();
        let (store, bytes) = (superblock.store, superblock.catalogue_bytes);
        let read = catalogue::read(device, store, superblock.catalogue, bytes)?;
        let mut catalogue_pages = chain(storage, superblock.catalogue)?;
        catalogue_pages.extend(read.region_pages.iter().map(|(pointer, _)| *pointer));
        // After the ledger was locked: nothing of the checkpoint is behind the log.
        // The durable end may lie within a record, these do not.
        let whole = storage.log.claim().max(acknowledged);
        let log_end = storage.log.durable().max(whole);
        let (bitmap, mut segments) = bitmap(storage, &read.catalogue)?;
        let log = catalogue::main_log(&read.catalogue)?;
        main_log(storage, log, (whole, log_end), &mut segments)?;
        Ok(Self {
            superblock,
            catalogue: read.catalogue,
            catalogue_pages,
            bitmap,
            segments: segments.into_values().collect(),
            log_end,
            _kept: kept,
        })
    }

    /// Bytes of all of it.
    pub fn bytes(&self) -> u64 {
        let regions = self.catalogue.regions.iter();
        let trees =
            regions.flat_map(|region| region.levels.iter().map(kreon_format::TreeRecord::bytes));
        let parts = self.catalogue.logs.iter().flat_map(|log| &log.image);
        let image = parts
            .flat_map(|part| &part.pages)
            .map(|run| u64::from(run.count));
        let pages = (self.catalogue_pages.len() + self.bitmap.len()) as u64 + image.sum::<u64>();
        let log = self.segments.iter().map(|segment| u64::from(segment.end));
        trees
            .chain(log)
            .fold(pages * PAGE_BYTES as u64, u64::saturating_add)
    }
}

/// The pages of the catalogue's stream.
fn chain(storage: &Storage, head: PagePointer) -> Result<Vec<PagePointer>> {
    let (mut pages, mut next) = (Vec::new(), Some(head));
    while let Some(pointer) = next {
        let page = read_pages(storage.device.as_ref(), &[pointer.page])?;
        next = decode_page(page.first()?, storage.store, &pointer)?.1;
        pages.push(pointer);
    }
    Ok(pages)
}

/// Segments by their place.
type Segments = BTreeMap<SegmentId, LogSegment>;

/// Pages of the bitmap, each with its pointer.
type BitmapPages = Vec<(PagePointer, Box<PageBytes>)>;

/// The bitmap blocks of the checkpoint, and the segments of logs that they name.
fn bitmap(storage: &Storage, catalogue: &Catalogue) -> Result<(BitmapPages, Segments)> {
    let numbered: Vec<_> = (0..).zip(&catalogue.groups).collect();
    let pages: Vec<PageNo> = numbered
        .iter()
        .map(|(n, p)| bitmap_page(*n, p.copy))
        .collect();
    let (mut bitmap, mut segments) = (Vec::new(), Segments::new());
    let read = read_pages(storage.device.as_ref(), &pages)?;
    for (((number, group), page), bytes) in numbered.into_iter().zip(pages).zip(read.pages()) {
        let block = BitmapBlock::decode_pointed(bytes, storage.store, number, group)?;
        let pointer = PagePointer {
            page,
            epoch: group.epoch,
            checksum: group.checksum,
        };
        bitmap.push((pointer, Box::new(*bytes)));
        let first = group_first_segment(number).0;
        for (id, record) in (first..).map(SegmentId).zip(&block.segments) {
            if record.kind == SegmentKind::Log {
                segments.insert(
                    id,
                    LogSegment {
                        id,
                        log: record.log,
                        sequence: record.sequence,
                        is_live: record.live_bytes > 0,
                        ends_at_seam: false,
                        end: SEGMENT_BYTES as u32,
                        torn_from: SEGMENT_BYTES as u32,
                    },
                );
            }
        }
    }
    Ok((bitmap, segments))
}

/// Adds the segments into which the main log went on behind the checkpoint, and cuts all at `end`. Records before `whole`, a
/// border of them, are not cut by that.
fn main_log(
    storage: &Storage,
    log: &LogRecord,
    (whole, end): (Lsn, Lsn),
    segments: &mut Segments,
) -> Result<()> {
    let (last, within) = place_of(end);
    let torn_from = match place_of(whole) {
        (sequence, within) if sequence == last => within,
        _ => LOG_HEADER_BYTES,
    };
    for (id, sequence) in storage.allocator.lock().log_segments(MAIN_LOG) {
        segments.entry(id).or_insert(LogSegment {
            id,
            log: MAIN_LOG,
            sequence,
            is_live: false,
            ends_at_seam: false,
            end: SEGMENT_BYTES as u32,
            torn_from: SEGMENT_BYTES as u32,
        });
    }
    // Reserved, or opened without a record: the header goes with the first one.
    let has_records = within > LOG_HEADER_BYTES;
    segments.retain(|_, segment| {
        segment.log != MAIN_LOG
            || segment.sequence < last
            || (segment.sequence == last && has_records)
    });
    let of_main = segments
        .values_mut()
        .filter(|segment| segment.log == MAIN_LOG);
    let mut found: Vec<u64> = Vec::new();
    for segment in of_main {
        if segment.sequence == last {
            segment.end = within;
            segment.torn_from = torn_from;
            // Of a run before the marker the checkpoint knows no more than where it ended: there.
            let resumed = log.resumes.iter().map(|run| run.resume);
            let resumed = resumed.chain([log.marker]);
            segment.ends_at_seam = resumed.into_iter().any(|resume| resume == end);
        }
        found.push(segment.sequence);
    }
    found.sort_unstable();
    let from = place_of(log.marker).0;
    let until = last + u64::from(has_records);
    match (from..until).find(|sequence| found.binary_search(sequence).is_err()) {
        None => Ok(()),
        Some(sequence) => Err(Error::corruption(format!(
            "the log has lost its segment number {sequence}, which an opening needs"
        ))),
    }
}
