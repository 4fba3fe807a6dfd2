//! Headers and keys of all records of a segment, for garbage collection: in frames as far as those reach, else from the
//! device. Nothing of the device's bytes stays in the mapping.

use kreon_base::{LogOffset, Result, SegmentId};
use kreon_device::AlignedBuf;
use kreon_format::{
    FRAGMENT_HEADER_BYTES, Fragment, FragmentHeader, FragmentSeal, fragment_extent, fragment_start,
};
use kreon_mapping::LentRecord;

use super::cut::{PAYLOAD_START, SEGMENT};
use super::pages::LogPages;
use super::reader::LogReader;

/// What stands somewhere in a segment.
struct Standing {
    header: Option<FragmentHeader>,
    /// Bytes to the next fragment or pad.
    extent: usize,
}

impl LogReader {
    /// Shows the header of every fragment of a record in `segment`, which is wholly on the device, where it stands, and the
    /// key, if all of it is in the fragment. Reads with the whole of `buffer` what is not in memory.
    ///
    /// # Errors
    /// `Io`; those of `show`.
    pub fn keys_of(
        &self,
        pages: &impl LogPages,
        (segment, sequence): (SegmentId, u64),
        buffer: &mut AlignedBuf,
        mut show: impl FnMut(LogOffset, &FragmentHeader, Option<&[u8]>) -> Result<()>,
    ) -> Result<()> {
        let from = self.resident_keys(pages, (segment, sequence), &mut show)?;
        self.fragments_from(
            (segment, sequence),
            from,
            buffer,
            |offset, header, payload| {
                show(offset, header, payload.get(..header.key_bytes as usize))
            },
        )
    }

    /// Shows what stands in frames from the start of the segment on. Returns where it stopped: at a page without a frame, at
    /// a record of many pages, or at what does not verify.
    fn resident_keys(
        &self,
        pages: &impl LogPages,
        (segment, sequence): (SegmentId, u64),
        show: &mut impl FnMut(LogOffset, &FragmentHeader, Option<&[u8]>) -> Result<()>,
    ) -> Result<u32> {
        let seal = self.home.seal(sequence);
        let (mut at, mut scratch) = (PAYLOAD_START, Vec::new());
        while at < SEGMENT {
            let offset = LogOffset(segment.offset_bytes() + u64::from(at));
            let Some(extent) = extent_at(pages, offset, SEGMENT - at) else {
                return Ok(at);
            };
            let shown = pages.with_resident(offset.0, extent, &mut scratch, |lent| {
                // The page may have been loaded anew since its length was looked at.
                let standing = standing(&lent, &seal, offset)?;
                let standing = Some(standing).filter(|standing| standing.extent == extent)?;
                Some(standing.header.map_or(Ok(()), |header| {
                    let behind = lent.bytes().get(FRAGMENT_HEADER_BYTES..);
                    let payload = behind.and_then(|rest| rest.get(..header.length_bytes as usize));
                    let key = payload.and_then(|payload| payload.get(..header.key_bytes as usize));
                    show(offset, &header, key)
                }))
            });
            match shown.flatten() {
                Some(shown) => shown?,
                None => return Ok(at),
            }
            at += extent as u32;
        }
        Ok(SEGMENT)
    }
}

/// How long the fragment or pad at `offset` says it is, if that is in a frame; `rest` bytes of the segment are left.
fn extent_at(pages: &impl LogPages, offset: LogOffset, rest: u32) -> Option<usize> {
    let start = pages.with_resident(offset.0, 8, &mut Vec::new(), |lent| {
        lent.bytes().first_chunk().map(fragment_extent)
    });
    start.flatten().filter(|extent| *extent <= rest as usize)
}

/// What is lent, if it is whole: it was verified before, or is now.
fn standing(lent: &LentRecord<'_>, seal: &FragmentSeal, offset: LogOffset) -> Option<Standing> {
    if !lent.is_verified() {
        Fragment::decode(lent.bytes(), seal, offset).ok()?;
        lent.set_verified();
    }
    let mut start = [0; FRAGMENT_HEADER_BYTES];
    // A pad may be shorter than a header.
    let filled = lent.bytes().len().min(FRAGMENT_HEADER_BYTES);
    start
        .get_mut(..filled)?
        .copy_from_slice(lent.bytes().get(..filled)?);
    let (header, extent) = fragment_start(&start)?;
    Some(Standing { header, extent })
}
