//! A client's link: what it may take, and its answers.

mod due;
mod link;
mod usage;

pub use due::Due;
pub use link::ClientLink;
pub use usage::Usage;
