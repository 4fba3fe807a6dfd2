//! Options for opening a file.

/// Whether an optional facility of the operating system is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Facility {
    /// Where it works; otherwise the fallback, reported once through `tracing`.
    #[default]
    Auto,
    /// Never.
    Off,
}

/// Options of [`FileDevice::open`](super::FileDevice::open).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileOptions {
    /// Create the file if it does not exist. Its folder must exist.
    pub create: bool,
    /// The file is opened with `O_RDONLY`, and writes fail with `ReadOnly`. Any number of read-only opens may share a file,
    /// but not with an open for writing.
    pub read_only: bool,
    /// Direct I/O (`O_DIRECT`). Without it transfers use the page cache, and
    /// [`block_bytes`](crate::Device::block_bytes) is a page.
    pub direct: Facility,
    /// `io_uring`. Without it the transfers of one call run one after the other by `preadv` or `pwritev`.
    pub ring: Facility,
    /// Transfers that one call keeps in flight, 1 to 4096.
    pub ring_depth: u32,
    /// Smallest block size to use, for a device whose atomic unit is larger than it reports. Rounded up to a power of
    /// two of at most [`BLOCK_BYTES_MAX`](crate::BLOCK_BYTES_MAX).
    pub block_bytes_min: u32,
    /// Limit of the file's length in bytes; `None`: that of the file system.
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
            block_bytes_min: crate::bounds::BLOCK_BYTES_MIN,
            len_bytes_max: None,
        }
    }
}
