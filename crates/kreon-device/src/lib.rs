//! Every system call that Kreon makes on a volume: files, block devices, direct I/O, `io_uring` with
//! a `preadv`/`pwritev` fallback, flush and lock; and the memory that such I/O needs.
//!
//! This is well 1: unsafe code lives in [`AlignedBuf`], [`AppendBuffer`], [`FileMap`], the ring,
//! [`HomeProcess`] and [`take_short_turns`], nowhere else.

mod aligned_buf;
mod append;
mod bounds;
mod device;
mod file;
mod process;
mod processors;
mod stats;
mod transfer;
mod turns;

pub use aligned_buf::{AlignedBuf, Backing};
pub use append::{AppendBuffer, Reservation, Reserve};
pub use bounds::Bounds;
pub use device::{BLOCK_BYTES_MAX, BLOCK_BYTES_MIN, Device, Ended, Read, ReadQueue, Write};
pub use file::{Facility, FileDevice, FileMap, FileOptions, MapAdvice};
pub use process::HomeProcess;
pub use processors::processors;
pub use stats::{DeviceStats, SIZE_CLASSES, TransferStats};
pub use turns::take_short_turns;
