//! Number of usable processors.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;

/// 0 before the first use. Not behind a lock: a child forked while another thread holds it would wait for ever.
static PROCESSORS: AtomicUsize = AtomicUsize::new(0);

/// Processors that the process may use, at least one. Cached at the first call, as the answer requires reading files of
/// the control group.
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
