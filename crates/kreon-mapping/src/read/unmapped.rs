//! Without the feature `comparison` nothing is read through the kernel's mapping: an `Option<Mapped>` is `None`, and the
//! compiler drops what stands behind a `Some`.

use std::mem::MaybeUninit;
use std::sync::Arc;

use kreon_base::{PageBytes, PageNo, Priority, Result};
use kreon_device::Device;

use crate::options::{MappingOptions, PageRequest};

/// There is none.
pub(crate) enum Mapped {}

impl Mapped {
    pub(crate) fn new(_: &Arc<dyn Device>, _: &MappingOptions) -> Result<Option<Self>> {
        Ok(None)
    }

    /// The memory that frames and their tables get: all.
    pub(crate) fn frame_memory_bytes(options: &MappingOptions) -> usize {
        options.memory_bytes
    }

    pub(crate) fn reads(&self) -> u64 {
        match *self {}
    }

    pub(crate) fn forget(&self, _: PageNo, _: u64) {
        match *self {}
    }

    pub(super) fn page_buffer() -> MaybeUninit<PageBytes> {
        MaybeUninit::uninit()
    }

    pub(super) fn copy_page<'b>(
        &self,
        _: &PageRequest<'_>,
        _: &'b mut MaybeUninit<PageBytes>,
    ) -> Option<Result<&'b PageBytes>> {
        match *self {}
    }

    pub(super) fn copy(&self, _: u64, _: Priority, _: &mut [u8]) -> bool {
        match *self {}
    }

    pub(crate) fn will_need(&self, _: &[PageRequest<'_>]) {
        match *self {}
    }
}
