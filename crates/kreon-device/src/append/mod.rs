//! A buffer for lock-free appends by many threads.

mod append_buffer;
mod commit_bits;
#[cfg(all(test, loom))]
mod models;
mod reservation;

pub use append_buffer::{AppendBuffer, Reserve};
pub use reservation::Reservation;
