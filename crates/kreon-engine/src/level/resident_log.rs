//! Records in frames, for readers that found them in the current view.

use kreon_log::ResidentPages;
use kreon_mapping::{LentRecord, Mapping};

use super::Views;
use super::log_source::LOG_PRIORITY;
use super::view::ViewSequence;

/// Log bytes in frames, as long as the view in which their records were found is the current one.
pub struct ResidentLog<'a> {
    /// Frames of the store.
    pub mapping: &'a Mapping,
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
        self.mapping.with_resident_record(
            offset_bytes,
            len_bytes,
            LOG_PRIORITY,
            scratch,
            if_current,
        )?
    }
}
