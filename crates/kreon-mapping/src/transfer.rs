//! How long one transfer of merged pages may be.

/// Most pages that are merged into one transfer: 1 MiB.
pub(crate) const TRANSFER_PAGES_MAX: usize = 256;
