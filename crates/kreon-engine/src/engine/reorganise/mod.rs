//! Partial reorganisation (`Kreon 3.2.3`): values that scans read again and again are laid together.
//!
//! What a scan reads from the device in more transfers than it would take if the values lay together is *excess*. It
//! is credited to the leaf of the lowest tree in which the keys are. When a leaf's credit has come to what it costs to
//! lay its values together, that is done: so reorganising never costs much more than scans paid already. Gets
//! credit nothing, nor do scans of what is in memory or lies together.
//!
//! - [`credits`]: the credit of leaves
//! - [`leaves`]: which pairs of a scan's step are in which leaf
//! - [`charge`]: what a step of a scan paid
//! - [`handed`]: values that a scan has just read
//! - [`range`](mod@range): the values of a leaf, and where they are
//! - [`copy`](mod@copy): copies of records that are in memory, for the most part
//! - [`work`]: the thread that lays them together
//! - [`space`]: how much space it may take for a while
//! - [`stats`]: what it did

mod charge;
mod copy;
mod credits;
mod handed;
mod leaves;
mod range;
mod space;
mod stats;
mod work;

pub use leaves::Leaves;
pub use stats::ReorganisationStats;
pub use work::Reorganiser;
