//! The end of the log in a file that has followed a primary: without reading the log from its start.
//!
//! All before the end of what came by a stream is in the file, as a primary had committed it. So it is enough to read from some
//! whole unit shortly before that end; which segments lie before is told by their headers. The rules by which a log ends stay
//! those of the replay, which begins there instead of at the marker.

use std::collections::BTreeMap;
use std::sync::Arc;

use kreon_base::{Error, LogId, LogOffset, Lsn, PageBytes, Result, SEGMENT_BYTES, SegmentId};
use kreon_device::{AlignedBuf, Backing, Device};
use kreon_engine::{Engine, Examined};
use kreon_format::{
    Catalogue, Fragment, FragmentSeal, LOG_HEADER_BYTES, LogRecord, LogSegmentHeader, OpenSegment,
    PagePointer, StoreId, Superblock, decode_page, incarnation_mark, lsn_at, place_of,
};
use kreon_log::{ReplayStart, replay};
use kreon_volume::Allocator;
use kreon_volume::page_io::read_pages;
use kreon_volume::superblock::{self, Found};

/// So many segments are searched for the end of a unit, backwards. A unit may be longer than that.
const SEGMENTS_MAX: u64 = 10;

/// What [`Engine::examine`] tells of a volume, whose log was received up to `followed`, if that is known. Takes some reads of
/// superblock, catalogue and bitmap, one of the header of each segment since the last checkpoint, and those of the last two
/// segments, instead of all since the image of L0.
///
/// Damage of what lies before is not found here, but by whoever opens the volume.
///
/// # Errors
/// Those of [`Engine::examine`].
pub fn examine(device: &Arc<dyn Device>, followed: Option<Lsn>) -> Result<Examined> {
    if let Some(followed) = followed {
        match examine_behind(device, followed) {
            Ok(Some(examined)) => return Ok(examined),
            Ok(None) => {}
            Err(error) => tracing::debug!(%error, "the whole log is read"),
        }
    }
    Engine::examine(device)
}

/// `None`: the whole log is to be read.
fn examine_behind(device: &Arc<dyn Device>, followed: Lsn) -> Result<Option<Examined>> {
    let Found::Store(superblock, damaged_slots) = superblock::read(device.as_ref())? else {
        return Ok(None);
    };
    let catalogue = read_catalogue(device.as_ref(), &superblock)?;
    let [record] = catalogue.logs.as_slice() else {
        return Ok(None);
    };
    let (store, count) = (superblock.store, superblock.segments);
    let allocator = Allocator::load(Arc::clone(device), count, store, count, &catalogue.groups)?;
    let known = allocator.log_segments(record.id);
    let log = Log {
        device: device.as_ref(),
        store,
        record,
    };
    let Some(chain) = log.chain(&known, followed)? else {
        return Ok(None);
    };
    let Some((unit_end, open)) = log.end_of_a_unit(&chain, followed)? else {
        return Ok(None);
    };
    let moved = LogRecord {
        marker: unit_end,
        open: Some(open),
        next: chain.get(&(open.sequence + 1)).copied(),
        ..record.clone()
    };
    let start = ReplayStart {
        device: device.as_ref(),
        store,
        record: &moved,
        newest: superblock.incarnation,
        segments: &known,
        taken: &allocator.taken_segments(),
        value_bytes_max: 0,
        backing: Backing::Sparse,
        has_image: false,
    };
    let end = replay(&start, |_| Ok(()))?;
    let mut segments: BTreeMap<u64, SegmentId> = chain.range(..open.sequence).map(copied).collect();
    let behind = end.history.segments.iter();
    segments.extend(behind.map(|(segment, sequence)| (*sequence, *segment)));
    Ok(Some(Examined {
        superblock,
        damaged_slots,
        log_end: end.history.end,
        log_segments: segments.iter().map(|(seq, seg)| (*seg, *seq)).collect(),
    }))
}

fn copied((sequence, segment): (&u64, &SegmentId)) -> (u64, SegmentId) {
    (*sequence, *segment)
}

/// The log, but for its regions.
fn read_catalogue(device: &dyn Device, superblock: &Superblock) -> Result<Catalogue> {
    let (mut bytes, mut next) = (Vec::new(), Some(superblock.catalogue));
    let len_bytes = superblock.catalogue_bytes;
    let mut pages = 0_u64;
    while let Some(pointer) = next {
        let page = read_pages(device, &[pointer.page])?;
        let (payload, following): (&[u8], Option<PagePointer>) =
            decode_page(page.first()?, superblock.store, &pointer)?;
        bytes.extend_from_slice(payload);
        (next, pages) = (following, pages + 1);
        // Pages may have no payload, so the length alone does not reveal a cycle.
        if bytes.len() as u64 > len_bytes || pages > u64::from(superblock.segments) << 9 {
            return Err(Error::corruption("the catalogue is longer than it can be"));
        }
    }
    match bytes.len() as u64 == len_bytes {
        true => Catalogue::decode(&bytes),
        false => Err(Error::corruption("the catalogue is shorter than it was")),
    }
}

struct Log<'a> {
    device: &'a dyn Device,
    store: StoreId,
    record: &'a LogRecord,
}

impl Log<'_> {
    /// The segments by sequence up to the one in which `followed` lies, as a replay finds them; `None` if it is not there, or
    /// too near to the start of the replay for this to be worth it.
    fn chain(
        &self,
        known: &[(SegmentId, u64)],
        followed: Lsn,
    ) -> Result<Option<BTreeMap<u64, SegmentId>>> {
        let Some(open) = self.record.open else {
            return Ok(None);
        };
        let mut chain: BTreeMap<u64, SegmentId> = known
            .iter()
            .map(|(id, sequence)| (*sequence, *id))
            .collect();
        chain.entry(open.sequence).or_insert(open.segment);
        if let Some(next) = self.record.next {
            chain.entry(open.sequence + 1).or_insert(next);
        }
        let (first, _) = place_of(self.record.replay_start());
        let last = last_sequence(followed);
        if last <= first {
            return Ok(None);
        }
        for sequence in open.sequence..last {
            let Some(segment) = chain.get(&sequence).copied() else {
                return Ok(None);
            };
            let page = read_pages(self.device, &[segment.first_page()])?;
            let header = self.header(page.first()?, segment, sequence)?;
            if let Some(next) = header.next {
                chain.entry(sequence + 1).or_insert(next);
            }
        }
        Ok(chain.contains_key(&last).then_some(chain))
    }

    fn header(
        &self,
        page: &PageBytes,
        segment: SegmentId,
        sequence: u64,
    ) -> Result<LogSegmentHeader> {
        let header = LogSegmentHeader::decode(page, self.store, segment)?;
        let (log, found): (LogId, u64) = (header.log, header.sequence);
        match (log, found) == (self.record.id, sequence) {
            true => Ok(header),
            false => Err(Error::corruption("a segment of another place of the log")),
        }
    }

    /// Where a whole unit ends at or before `followed`, soon after the start of a segment, and that segment.
    fn end_of_a_unit(
        &self,
        chain: &BTreeMap<u64, SegmentId>,
        followed: Lsn,
    ) -> Result<Option<(Lsn, OpenSegment)>> {
        let last = last_sequence(followed);
        // Not before what a replay reads.
        let (first, _) = place_of(self.record.replay_start());
        let least = (first + 1).max(last.saturating_sub(SEGMENTS_MAX - 1));
        for sequence in (least..=last).rev() {
            let Some(segment) = chain.get(&sequence).copied() else {
                return Ok(None);
            };
            let open = OpenSegment { segment, sequence };
            let mut bytes = AlignedBuf::new(SEGMENT_BYTES as usize);
            self.device.read_at(segment.offset_bytes(), &mut bytes)?;
            if let Some(end) = self.first_end(&bytes, open, followed) {
                return Ok(Some((end, open)));
            }
        }
        Ok(None)
    }

    /// The end of the first unit that ends in a segment, at or before `upto`.
    fn first_end(&self, bytes: &[u8], open: OpenSegment, upto: Lsn) -> Option<Lsn> {
        let seal = FragmentSeal {
            store: self.store,
            sequence: open.sequence,
        };
        let resumes = &self.record.resumes;
        let mut within = LOG_HEADER_BYTES;
        while u64::from(within) < SEGMENT_BYTES {
            let at = lsn_at(open.sequence, within);
            let passed = resumes.partition_point(|resume| resume.resume <= at);
            let run = passed.checked_sub(1).and_then(|index| resumes.get(index));
            let run = run.map_or(self.record.incarnation, |run| run.incarnation);
            let offset = LogOffset(open.segment.offset_bytes() + u64::from(within));
            let rest = bytes.get(within as usize..)?;
            let fragment = Fragment::decode(rest, &seal, offset).ok()?;
            let end = Lsn(at.0 + fragment.extent_bytes() as u64);
            let is_over = resumes.get(passed).is_some_and(|next| end > next.end);
            if !fragment.is_of(incarnation_mark(run)) || is_over || end > upto {
                return None;
            }
            if let Fragment::Record { header, .. } = &fragment
                && header.ends_unit
            {
                return Some(end);
            }
            within += fragment.extent_bytes() as u32;
        }
        None
    }
}

/// The segment that holds the byte before `end`.
fn last_sequence(end: Lsn) -> u64 {
    place_of(Lsn(end.0.saturating_sub(1))).0
}

#[cfg(test)]
mod tests {
    use kreon_engine::{Durability, MEMORY_BYTES_MIN, Operation, Options, Terms};
    use kreon_sim::{Dice, SimDevice, SimOptions};

    use super::*;

    fn open(device: &Arc<SimDevice>) -> Engine {
        let options = Options {
            memory_bytes: 8 * MEMORY_BYTES_MIN,
            backing: Backing::Sparse,
            idle_reorganisation: false,
            ..Options::default()
        };
        Engine::open(Arc::clone(device) as Arc<dyn Device>, options).unwrap()
    }

    /// Appends units of one to three records, some of them longer than a segment.
    fn append(engine: &Engine, dice: &mut Dice) {
        let region = engine.region_with("values", Durability::Buffered).unwrap();
        let long = if dice.below(12) == 0 { 5 << 20 } else { 60_000 };
        let value = vec![dice.below(256) as u8; 1 + dice.below(long) as usize];
        let keys: Vec<[u8; 8]> = (0..=dice.below(3))
            .map(|_| dice.below(1000).to_be_bytes())
            .collect();
        let operation = |key| Operation {
            region: &region,
            key,
            value: Some(&value),
            is_range: false,
            terms: Terms::default(),
        };
        let operations: Vec<_> = keys.iter().map(|key| operation(&key[..])).collect();
        engine.write_ahead(&operations).unwrap();
    }

    fn read_bytes(device: &Arc<dyn Device>, followed: Option<Lsn>) -> (u64, Examined) {
        let before = device.stats().reads.bytes;
        let examined = examine(device, followed).unwrap();
        (device.stats().reads.bytes - before, examined)
    }

    #[test]
    fn a_short_look_tells_what_the_whole_log_does() {
        let device = Arc::new(SimDevice::new(SimOptions::default()));
        let mut dice = Dice::new(11);
        let (mut short, mut whole) = (0, 0);
        for _ in 0..4 {
            let engine = open(&device);
            for _ in 0..4 {
                for _ in 0..dice.below(60) {
                    append(&engine, &mut dice);
                }
                engine.sync().unwrap();
                let durable = engine.log_durable();
                if dice.below(2) == 0 {
                    append(&engine, &mut dice);
                }
                let options = SimOptions::default();
                let copy = SimDevice::from_image(device.image(), options);
                let copy = Arc::new(copy) as Arc<dyn Device>;
                // Any position up to which all is there will do.
                let followed = Lsn(durable.0 - 8 * dice.below(3000).min(durable.0 / 8));
                let (bytes, told) = read_bytes(&copy, Some(followed));
                let (all_bytes, all) = read_bytes(&copy, None);
                assert_eq!(told.log_end, all.log_end);
                assert_eq!(told.log_segments, all.log_segments);
                assert_eq!(told.superblock, all.superblock);
                assert!(told.log_end >= durable);
                short += bytes;
                whole += all_bytes;
            }
            engine.abandon().unwrap();
        }
        assert!(2 * short < whole, "{short} of {whole} bytes were read");
    }

    #[test]
    fn a_position_that_the_file_lacks_is_no_harm() {
        let device = Arc::new(SimDevice::new(SimOptions::default()));
        let engine = open(&device);
        let mut dice = Dice::new(3);
        for _ in 0..200 {
            append(&engine, &mut dice);
        }
        engine.sync().unwrap();
        engine.abandon().unwrap();
        let device = device as Arc<dyn Device>;
        let whole = Engine::examine(&device).unwrap();
        let behind = Lsn(whole.log_end.0 + 3 * SEGMENT_BYTES);
        for followed in [Lsn(0), Lsn(1), whole.log_end, behind, Lsn::MAX] {
            let told = examine(&device, Some(followed)).unwrap();
            assert_eq!(
                (told.log_end, told.log_segments),
                (whole.log_end, whole.log_segments.clone())
            );
        }
    }
}
