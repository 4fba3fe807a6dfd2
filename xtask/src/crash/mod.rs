//! The kill -9 loop: a process writes, is killed at some moment, and what its store still holds is
//! compared with what it was told to be safe.
//!
//! A kill takes away what the process had in its memory, not what it had given to the kernel: a
//! missing flush does not show here. `kreon-torture` shows those on a simulated device.

mod ack;
mod dice;
mod judge;
mod place;
mod rounds;
mod witness;
mod workload;
mod writer;

pub use rounds::{CrashArguments, run};
pub use witness::{WitnessArguments, witness};
pub use writer::{WriterArguments, write};
