//! Records in memory, for readers that have a cheaper way than [`LogReader::with_value`] to know that they may look there.

use kreon_format::{Fragment, fragment_bytes};

use super::read::ValueAt;
use super::reader::LogReader;
use super::take_value::TakeValue;

/// Bytes of the log that are in memory and final.
pub trait ResidentPages {
    /// Calls `use_bytes` with bytes of the volume if they are in memory, and the record that was looked up is still theirs.
    /// Never waits.
    fn with_resident<R>(
        &self,
        offset_bytes: u64,
        len_bytes: usize,
        scratch: &mut Vec<u8>,
        use_bytes: impl FnOnce(&[u8]) -> R,
    ) -> Option<R>;
}

impl LogReader {
    /// Hands the value of the record `at` to what is in `take`, if the record is one fragment, in memory, and verifies.
    /// `None`: `take` is untouched, and [`with_value`](Self::with_value) reads the record or says what is wrong with it.
    #[inline]
    pub fn with_resident_value<T: TakeValue>(
        &self,
        pages: &impl ResidentPages,
        at: &ValueAt<'_>,
        scratch: &mut Vec<u8>,
        take: &mut Option<T>,
    ) -> Option<T::Taken> {
        let piece = at.pieces().next().filter(|piece| piece.is_last)?;
        let seal = self.home.seal(self.table.sequence(at.offset.segment())?);
        let extent = fragment_bytes(piece.payload_bytes);
        let show = |bytes: &[u8]| {
            let fragment = Fragment::decode(bytes, &seal, at.offset).ok()?;
            let range = at.check(&fragment, &piece, 0).ok()?;
            let Fragment::Record { payload, .. } = fragment else {
                return None;
            };
            let value = payload.get(range)?;
            Some(take.take()?.take(value))
        };
        pages.with_resident(at.offset.0, extent, scratch, show)?
    }
}
