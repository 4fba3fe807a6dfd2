//! A backup's end of a stream: what it received becomes a byte-identical volume, in a file of any kind.
//!
//! - [`Follower`]: what came, what is to be done next, and what may be answered; without I/O
//! - `taken`: packets that wait for their turn; `log_course`: which log may come next; `log_tail`: log that is
//!   not written yet
//! - `touched`: of a joiner, what is newer than copies
//! - [`Capacity`]: what it grants
//! - [`Work`]: one thing to be done to the file
//! - `ballast`: space that is kept for allocations granted ahead
//! - [`FollowerThread`]: the thread that does the work

mod ballast;
mod capacity;
mod core;
mod doing;
mod early_flush;
mod log_course;
mod log_tail;
mod taken;
mod thread;
mod touched;
mod work;

pub use self::ballast::Ballast;
pub use self::capacity::Capacity;
pub use self::core::{Follower, LOG_BATCH_BYTES, LOG_DELAY};
pub use self::thread::{Answer, FollowerThread};
pub use self::work::{Piece, Work};
