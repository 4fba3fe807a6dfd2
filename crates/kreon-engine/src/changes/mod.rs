//! The change feed: what was written and is durable, in the order of the log, for caches and followers.
//!
//! A feed reads the log that the store keeps anyway, or for the feed ([`FeedLog`](crate::state::FeedLog)), straight from
//! the device. Of changes that are not records of the log, loads and drops of regions, it has notices if there is a feed.
//!
//! - [`unit`]: what a feed shows
//! - [`reader`]: a feed
//! - [`source`]: where feeds begin

mod reader;
mod source;
mod unit;

pub use reader::Changes;
pub use source::ChangeSource;
pub use unit::{Change, ChangeUnit, Changed, Position};
