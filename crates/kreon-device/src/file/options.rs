//! How a file is opened.

/// Whether a facility of the operating system is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Facility {
    /// Where it works; the way around it, said once through `tracing`, where it is refused.
    #[default]
    Auto,
    /// Never.
    Off,
}

/// How [`FileDevice::open`](super::FileDevice::open) opens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileOptions {
    /// Create the file if it does not exist. Its folder must exist.
    pub create: bool,
    /// Writes are `InvalidArgument`. Any number of read-only opens may share a file, but not with an
    /// open for writing.
    pub read_only: bool,
    /// Direct I/O (`O_DIRECT`); without it through the page cache, where
    /// [`block_bytes`](crate::Device::block_bytes) is a page.
    pub direct: Facility,
    /// `io_uring`; without it the transfers of one call follow one another by `preadv`/`pwritev`.
    pub ring: Facility,
    /// Transfers that one call keeps in flight, 1 to 4096.
    pub ring_depth: u32,
    /// Least block to work with, for a device whose atomic unit is larger than it says. Rounded up
    /// to a power of two of at most [`BLOCK_BYTES_MAX`](crate::BLOCK_BYTES_MAX).
    pub block_bytes_min: u32,
    /// Limit to which a file may grow; `None`: what the file system allows.
    pub len_bytes_max: Option<u64>,
}

impl Default for FileOptions {
    fn default() -> Self {
        Self {
            create: false,
            read_only: false,
            direct: Facility::Auto,
            ring: Facility::Auto,
            ring_depth: 64,
            block_bytes_min: crate::device::BLOCK_BYTES_MIN,
            len_bytes_max: None,
        }
    }
}
