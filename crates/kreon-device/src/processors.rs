//! How many threads can run at once.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;

/// 0 before it was first asked for. Not a lock: a child that was forked while another thread holds it would wait for ever.
static PROCESSORS: AtomicUsize = AtomicUsize::new(0);

/// Processors that the process may use, as it was when first asked for: the answer takes files of the control group.
/// At least one.
pub fn processors() -> usize {
    match PROCESSORS.load(Relaxed) {
        0 => {
            let found = thread::available_parallelism().map_or(1, usize::from);
            PROCESSORS.store(found, Relaxed);
            found
        }
        known => known,
    }
}
