//! A buffer that many threads append to at once.

mod append_buffer;
mod commit_bits;
#[cfg(all(test, loom))]
mod models;
mod reservation;

pub use append_buffer::{AppendBuffer, Reserve};
pub use reservation::Reservation;
