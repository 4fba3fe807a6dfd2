//! Headers and keys of all records of a segment, for garbage collection: in frames as far as those reach, else from the
//! device. Nothing of the device's bytes stays in the mapping.
//!
//! In frames only headers and keys are looked at, and no checksum: that of each record is verified when it is copied. A
//! header that is damaged there at worst hides records, whose segment then keeps them and is not freed.

use kreon_base::{KEY_BYTES_MAX, LogOffset, Result, SegmentId};
use kreon_device::AlignedBuf;
use kreon_format::{FRAGMENT_HEADER_BYTES, FragmentHeader, fragment_start};

use super::cut::{PAYLOAD_START, SEGMENT};
use super::pages::LogPages;
use super::reader::LogReader;

impl LogReader {
    /// Shows the header of every fragment of a record in `segment`, which is wholly on the device, where it stands, and the
    /// key, if all of it is in the fragment. Reads with the whole of `buffer`.
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
        let from = resident_keys(pages, segment, &mut show)?;
        self.fragments_from(
            (segment, sequence),
            from,
            buffer,
            |offset, header, payload| {
                show(offset, header, payload.get(..header.key_bytes as usize))
            },
        )
    }
}

/// Shows what stands in frames from the start of the segment on. Returns where it stopped: at a page without a frame, or
/// what cannot be a fragment.
fn resident_keys(
    pages: &impl LogPages,
    segment: SegmentId,
    show: &mut impl FnMut(LogOffset, &FragmentHeader, Option<&[u8]>) -> Result<()>,
) -> Result<u32> {
    let (mut at, mut scratch) = (PAYLOAD_START, Vec::with_capacity(KEY_BYTES_MAX.min(512)));
    while at < SEGMENT {
        let offset = LogOffset(segment.offset_bytes() + u64::from(at));
        // A pad may be shorter than a header.
        let start = (SEGMENT - at).min(FRAGMENT_HEADER_BYTES as u32) as usize;
        let header = pages.with_resident(offset.0, start, &mut scratch, |lent| {
            let mut bytes = [0; FRAGMENT_HEADER_BYTES];
            let filled = bytes.get_mut(..lent.bytes().len())?;
            filled.copy_from_slice(lent.bytes());
            fragment_start(&bytes)
        });
        let Some((header, extent)) = header.flatten() else {
            return Ok(at);
        };
        if extent > (SEGMENT - at) as usize {
            return Ok(at);
        }
        if let Some(header) = header {
            let has_key = header.starts_record && header.key_bytes <= header.length_bytes;
            let behind = offset.0 + FRAGMENT_HEADER_BYTES as u64;
            let shown = match has_key {
                true if header.key_bytes == 0 => Some(show(offset, &header, Some(&[]))),
                true => {
                    pages.with_resident(behind, header.key_bytes as usize, &mut scratch, |lent| {
                        show(offset, &header, Some(lent.bytes()))
                    })
                }
                false => Some(show(offset, &header, None)),
            };
            let Some(shown) = shown else {
                return Ok(at);
            };
            shown?;
        }
        at += extent as u32;
    }
    Ok(SEGMENT)
}
