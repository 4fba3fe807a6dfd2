//! Partial reorganisation (`Kreon 3.2.3`): values are laid together in key order, where scans ask for it and in idle time.
//!
//! *Excess reads* are the transfers of a scan beyond those that it would need if its values lay together. They are credited
//! to the leaf of the lowest tree that has the keys. When the credit of a leaf reaches the cost of laying its values
//! together, they are moved: so reorganisation never costs much more than scans paid already. Gets credit nothing, nor do
//! scans of values that are in memory or lie together.
//!
//! - [`range`](mod@range): the values of a leaf, and their places
//! - [`copy`](mod@copy): copies of records that are mostly in memory
//! - [`work`]: rounds of reorganisation, in a thread of the store
//! - [`idle`]: rounds while nobody writes; [`walk`]: what they find; [`pass`]: when they come, and how fast
//! - [`stats`]: its figures

mod copy;
mod idle;
mod pass;
mod range;
mod stats;
mod walk;
mod work;

pub use idle::IdleReorganiser;
pub use stats::{IdleStats, ReorganisationStats};
pub use work::Reorganiser;
