//! Records in memory, for readers that have a cheaper way than [`LogReader::with_value`] to know that they may look there.

use kreon_format::{Fragment, fragment_bytes};
use kreon_mapping::LentRecord;

use super::pages::ResidentPages;
use super::read::ValueAt;
use super::reader::LogReader;
use super::take_value::TakeValue;

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
        let fragment_at = self.fragment_at(at.offset, fragment_bytes(piece.payload_bytes));
        let show = |lent: LentRecord<'_>| {
            let fragment = self.lent_fragment(&fragment_at, &lent)?;
            let range = at.check(&fragment, &piece, 0).ok()?;
            let Fragment::Record { payload, .. } = fragment else {
                return None;
            };
            let value = payload.get(range)?;
            Some(take.take()?.take(value))
        };
        pages.with_resident(at.offset.0, fragment_at.extent, scratch, show)?
    }
}
