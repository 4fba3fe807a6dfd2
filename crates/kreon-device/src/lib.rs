//! All system calls on a volume: files, block devices, direct I/O, `io_uring` with a fallback to `preadv` and
//! `pwritev`, flush and lock; and the memory for such I/O.
//!
//! Other systems than Linux get `preadv` and `pwritev` through the page cache, without allocation ahead and holes.
//!
//! This is well 1. Its unsafe code is in [`AlignedBuf`], [`AppendBuffer`], `FileMap`, the rings, [`HomeProcess`],
//! [`take_short_turns`] and `system`.

mod aligned_buf;
mod append;
mod bounds;
mod device;
mod file;
mod immediate;
mod process;
mod processors;
mod read_only;
mod stats;
mod status;
mod system;
mod transfer;
mod transfer_queue;
mod turns;
mod wall_clock;

pub use aligned_buf::{AlignedBuf, Backing};
pub use append::{AppendBuffer, Reservation, Reserve};
pub use bounds::{BLOCK_BYTES_MAX, BLOCK_BYTES_MIN, Bounds};
pub use device::{Device, Ended, Read, ReadQueue, Write};
pub use file::{Facility, FileDevice, FileOptions};
#[cfg(feature = "comparison")]
pub use file::{FileMap, MapAdvice};
pub use process::HomeProcess;
pub use processors::processors;
pub use read_only::ReadOnlyDevice;
pub use stats::{DeviceStats, SIZE_CLASSES, TransferStats};
pub use status::{StatusSocket, ask_status};
pub use transfer_queue::{Transfer, TransferQueue, Transferred};
pub use turns::take_short_turns;
pub use wall_clock::wall_clock_ms;
