//! Pads: filler of the log behind a flush and at the end of a segment.
//!
//! A pad: checksum (4 bytes) | length word (4) | the durable LSN (8), if there is room | zeroes.

use kreon_base::{Error, LogOffset, Lsn, Result, SEGMENT_BYTES};

use crate::bytes::{array_at, put_u32, put_u64, u32_at};
use crate::fragment::{Fragment, FragmentSeal, LENGTH_AT, LengthWord, RECORD_ALIGN_BYTES, damaged};

/// Shortest pad.
pub const PAD_BYTES_MIN: usize = 8;

/// Shortest pad with a durable LSN.
const WITH_DURABLE_BYTES: usize = 16;

/// Fills `pad` (a multiple of 8 bytes, [`PAD_BYTES_MIN`] to a segment; otherwise `InvalidArgument`) with a checksummed
/// filler of the incarnation with the mark `incarnation`. From 16 bytes on it carries `durable`: everything before that
/// LSN is durable. `offset` is the offset of the pad on the volume.
pub fn encode_pad(
    pad: &mut [u8],
    seal: &FragmentSeal,
    offset: LogOffset,
    incarnation: u16,
    durable: Lsn,
) -> Result<()> {
    let too_long = pad.len() as u64 > SEGMENT_BYTES;
    if pad.len() < PAD_BYTES_MIN || !pad.len().is_multiple_of(RECORD_ALIGN_BYTES) || too_long {
        let length = pad.len();
        return Err(Error::invalid(format!(
            "a pad of {length} bytes in the log"
        )));
    }
    pad.fill(0);
    let length = LengthWord::new(true, pad.len() - PAD_BYTES_MIN, incarnation);
    put_u32(pad, LENGTH_AT, length.0);
    if pad.len() >= WITH_DURABLE_BYTES {
        put_u64(pad, PAD_BYTES_MIN, durable.0);
    }
    let checksum = checksum(pad, seal, offset);
    put_u32(pad, 0, checksum);
    Ok(())
}

/// Bytes of a pad with the length word `length`.
pub(crate) fn extent(length: LengthWord) -> usize {
    PAD_BYTES_MIN + length.length_bytes().next_multiple_of(RECORD_ALIGN_BYTES)
}

/// Decodes the pad that fills `whole`.
pub(crate) fn decode<'a>(
    whole: &'a [u8],
    seal: &FragmentSeal,
    offset: LogOffset,
) -> Result<Fragment<'a>> {
    if checksum(whole, seal, offset) != u32_at(whole, 0) {
        return Err(damaged(offset, "the checksum of a pad does not match"));
    }
    let length = LengthWord(u32_at(whole, LENGTH_AT));
    if length.length_bytes() + PAD_BYTES_MIN != whole.len() {
        return Err(damaged(offset, "a pad of uneven length"));
    }
    Ok(Fragment::Pad {
        pad_bytes: whole.len(),
        incarnation: length.mark(),
        durable: array_at(whole, PAD_BYTES_MIN).map(|lsn| Lsn(u64::from_le_bytes(lsn))),
    })
}

/// The checksum of the pad that fills `whole`. The length word is in the place of a fragment's; the rest of a
/// fragment's header counts as zero.
fn checksum(whole: &[u8], seal: &FragmentSeal, offset: LogOffset) -> u32 {
    let mut header = [0; 12];
    header[..4].copy_from_slice(&u32_at(whole, LENGTH_AT).to_le_bytes());
    let behind = whole.get(PAD_BYTES_MIN..).unwrap_or_default();
    seal.checksum(offset, &header, [behind])
}
