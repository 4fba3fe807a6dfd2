//! A partition: a state machine without I/O of its own. It shares nothing with other partitions but the source of
//! extents and the clock of flushes (KVell 4.1).
//!
//! The driver gives it requests and the ends of transfers, and takes transfers and replies. From the ground:
//!
//! - `after`: what becomes true when a write is done, or durable
//! - `request`: requests and replies
//! - `contents`: contents of cells, and buffers for more
//! - `cells`: cells with I/O under way, and the cache
//! - `durable`: writes that await a flush
//! - `room`: the partition's slots
//! - `large`: values that are longer than a slot
//! - `queue`: requests that wait, and who goes first on a key
//! - `parts`: what requests work on, and how they change it
//! - `lookup`: finds the item of a key
//! - `step`: how far a request came
//! - `tied`: lists the keys that look alike in the index
//! - `machine`: the partition
//! - `recovery`: what the device holds becomes a partition
//! - `image`: what a recovery would find, as records, and back

mod after;
mod cells;
mod contents;
mod durable;
mod image;
mod large;
mod lookup;
mod machine;
mod parts;
mod queue;
mod recovery;
mod request;
mod room;
mod step;
mod tied;

pub use cells::{Cells, Transfer};
pub use large::LargeValues;
pub use machine::{FlushWish, Partition};
pub use parts::Parts;
pub use recovery::{Allowance, Recovery, Surroundings};
pub use request::{Durability, Origin, Reply, Request, Task, Ticket, Tied, TiedKey};
pub use room::Room;
