//! Power cuts of a real device: what a block trace of a running store allows to be left.
//!
//! A store with threads, `O_DIRECT` and `io_uring` runs on a file that `qemu-storage-daemon` exports;
//! every write, discard and flush that reaches the block layer is logged there. The log becomes a
//! [`History`](kreon_sim::History), and of that crash states are tried.
//!
//! - [`log`]: the log's format
//! - [`daemon`]: the process that logs
//! - [`mark`]: how the log says what the store knew when
//! - [`marking`]: the device that leaves marks
//! - [`course`]: what the threads write
//! - [`work`]: the threads, and the record of what was acknowledged
//! - [`events`]: from a log to a history
//! - [`judge`]: whether a crash state is what it must be
//! - [`record`]: a recording, from start to end
//! - [`replay`]: the crash states of a recording
//! - [`errors`]: failures of the block layer under a running store
//! - [`run`]: the command

pub mod course;
pub mod daemon;
pub mod errors;
pub mod events;
pub mod judge;
pub mod log;
pub mod mark;
pub mod marking;
pub mod record;
pub mod replay;
pub mod run;
pub mod work;
