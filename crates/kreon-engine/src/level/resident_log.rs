//! Records in frames, for readers that found them in the current view.

use kreon_log::ResidentPages;
use kreon_mapping::LentRecord;

use super::view::ViewSequence;
use super::{MappedLog, Views};

/// Log bytes in frames, as long as the view in which their records were found is the current one.
pub struct ResidentLog<'a> {
    /// Log bytes of the store.
    pub log: MappedLog<'a>,
    /// The views of the store.
    pub views: &'a Views,
    /// The view in which the records were found.
    pub found_in: ViewSequence,
}

impl ResidentPages for ResidentLog<'_> {
    #[inline]
    fn with_resident<R>(
        &self,
        offset_bytes: u64,
        len_bytes: usize,
        scratch: &mut Vec<u8>,
        use_record: impl FnOnce(LentRecord<'_>) -> R,
    ) -> Option<R> {
        let if_current = |lent: LentRecord<'_>| {
            // Asked while the frame is pinned: then nothing can change under the reader any more.
            let is_current = self.views.is_current(self.found_in);
            is_current.then(|| use_record(lent))
        };
        self.log
            .with_resident(offset_bytes, len_bytes, scratch, if_current)?
    }
}
