//! Encoding of a log's record in the catalogue.

use kreon_base::{Incarnation, LogId, Lsn, PageNo, RegionId, SegmentId};

use crate::bytes::{u48, u48_bytes};
use crate::catalogue_codec::{Reader, encode_list, encode_tree, read_tree};
use crate::{
    ImagePart, LOG_SEQUENCE_MAX, LogRecord, LogResume, OpenSegment, PAGE_NO_MAX, PageRun, place_of,
};

/// In the number of a log: the place from which on it is kept for a change feed follows. Since format 6.
const IS_FOLLOWED: u16 = 1 << 15;

/// Least bytes of an encoded record, to reject a count that cannot fit in the bytes left.
pub(crate) const LOG_BYTES_MIN: usize = 2 + 8 + 8 + 4 + 8 + 1 + 1;
const RESUME_BYTES: usize = 8 + 8 + 8;
const PART_BYTES_MIN: usize = 8 + 8 + 8 + 4 + 4;
const IMAGE_TREE_BYTES_MIN: usize = 4 + 1;
const RUN_BYTES: usize = 6 + 4;

/// Behind what is written of the catalogue so far.
pub(crate) fn encode_log(log: &LogRecord, out: &mut Vec<u8>) {
    match log.followed_from {
        None => out.extend(log.id.0.to_le_bytes()),
        Some(from) => {
            out.extend((log.id.0 | IS_FOLLOWED).to_le_bytes());
            out.extend(from.0.to_le_bytes());
        }
    }
    out.extend(log.marker.0.to_le_bytes());
    out.extend(log.incarnation.0.to_le_bytes());
    encode_list(&log.resumes, out, |resume, out| {
        out.extend(resume.end.0.to_le_bytes());
        out.extend(resume.resume.0.to_le_bytes());
        out.extend(resume.incarnation.0.to_le_bytes());
    });
    out.extend(log.durable.0.to_le_bytes());
    out.push(log.open.is_some().into());
    if let Some(open) = log.open {
        out.extend(open.segment.0.to_le_bytes());
        out.extend(open.sequence.to_le_bytes());
    }
    out.push(log.next.is_some().into());
    if let Some(next) = log.next {
        out.extend(next.0.to_le_bytes());
    }
    encode_list(&log.image, out, encode_part);
}

fn encode_part(part: &ImagePart, out: &mut Vec<u8>) {
    for lsn in [part.start, part.end, part.needed] {
        out.extend(lsn.0.to_le_bytes());
    }
    encode_list(&part.trees, out, |(region, tree), out| {
        out.extend(region.0.to_le_bytes());
        encode_tree(tree, out);
    });
    encode_list(&part.pages, out, |run, out| {
        out.extend(u48_bytes(run.first.0));
        out.extend(run.count.to_le_bytes());
    });
}

fn read_part(reader: &mut Reader<'_>) -> Option<ImagePart> {
    Some(ImagePart {
        start: Lsn(reader.u64()?),
        end: Lsn(reader.u64()?),
        needed: Lsn(reader.u64()?),
        trees: reader.list(IMAGE_TREE_BYTES_MIN, |reader| {
            Some((RegionId(reader.u32()?), read_tree(reader)?))
        })?,
        pages: reader.list(RUN_BYTES, read_run)?,
    })
}

fn read_run(reader: &mut Reader<'_>) -> Option<PageRun> {
    let run = PageRun {
        first: PageNo(u48(reader.input.array()?)),
        count: reader.u32()?,
    };
    let behind = run.first.0 + u64::from(run.count);
    (run.count > 0 && behind <= PAGE_NO_MAX + 1).then_some(run)
}

/// Whether the parts are consecutive and reach over the marker.
fn is_image(parts: &[ImagePart], marker: Lsn) -> bool {
    let follows = |pair: &[ImagePart]| pair[0].end == pair[1].start;
    let [first, ..] = parts else {
        return true;
    };
    first.start <= marker
        && first.end > marker
        && parts.windows(2).all(follows)
        && parts
            .iter()
            .all(|part| part.start < part.end && part.end <= part.needed)
}

/// One log; `None` if it is damaged.
pub(crate) fn read_log(reader: &mut Reader<'_>) -> Option<LogRecord> {
    let number = reader.u16()?;
    let followed_from = match number & IS_FOLLOWED {
        0 => None,
        _ => Some(Lsn(reader.u64()?)),
    };
    let log = LogRecord {
        id: LogId(number & !IS_FOLLOWED),
        followed_from,
        marker: Lsn(reader.u64()?),
        incarnation: Incarnation(reader.u64()?),
        resumes: reader.list(RESUME_BYTES, read_resume)?,
        durable: Lsn(reader.u64()?),
        open: reader.optional(|reader| {
            Some(OpenSegment {
                segment: SegmentId(reader.u32()?),
                sequence: reader.u64()?,
            })
        })?,
        next: reader.optional(|reader| reader.u32().map(SegmentId))?,
        image: match reader.version {
            0..=1 => Vec::new(),
            _ => reader.list(PART_BYTES_MIN, read_part)?,
        },
    };
    let sequences = [log.marker, log.durable].map(|lsn| place_of(lsn).0);
    let sequences = sequences
        .into_iter()
        .chain(log.followed_from.map(|from| place_of(from).0))
        .chain(log.resumes.iter().map(|run| place_of(run.resume).0))
        .chain(log.image.iter().map(|part| place_of(part.needed).0))
        .chain(log.open.map(|open| open.sequence));
    if sequences.max() > Some(LOG_SEQUENCE_MAX) || !is_image(&log.image, log.marker) {
        return None;
    }
    let borders = log.resumes.iter().flat_map(|run| [run.end, run.resume]);
    let is_between = |run: &LogResume| run.end < log.marker && log.marker < run.resume;
    let is_sound = borders.is_sorted() && !log.resumes.iter().any(is_between);
    is_sound.then_some(log)
}

fn read_resume(reader: &mut Reader<'_>) -> Option<LogResume> {
    Some(LogResume {
        end: Lsn(reader.u64()?),
        resume: Lsn(reader.u64()?),
        incarnation: Incarnation(reader.u64()?),
    })
}
