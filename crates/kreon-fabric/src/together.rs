//! Packets that one thread sends in a row, and that leave together.

use std::cell::RefCell;
use std::marker::PhantomData;
use std::sync::Arc;

/// Has small packets that were sent meanwhile.
pub(crate) trait Held: Send + Sync {
    /// Sends them.
    fn flush(&self);
}

/// Who holds what, and how many of [`Together`] there are.
#[derive(Default)]
struct Holding {
    depth: usize,
    held: Vec<Arc<dyn Held>>,
}

thread_local! {
    static HOLDING: RefCell<Holding> = RefCell::default();
}

/// Until this is dropped, small packets that this thread sends for control or to and from clients wait, so that all of one
/// link leave with one call of the system; each link still keeps its order. For a thread that answers many requests one
/// after the other and does not wait meanwhile: what it has sent may not have left yet. A fabric may know nothing of it.
pub struct Together {
    /// Of the thread that began it.
    _own: PhantomData<*const ()>,
}

impl Together {
    /// Begins. Within another one it does nothing.
    #[must_use = "packets leave when it is dropped"]
    pub fn begin() -> Self {
        HOLDING.with_borrow_mut(|holding| holding.depth += 1);
        Self { _own: PhantomData }
    }

    /// Whether this thread is in one.
    pub(crate) fn is_begun() -> bool {
        HOLDING.with_borrow(|holding| holding.depth > 0)
    }

    /// `held` has packets of this thread.
    pub(crate) fn add<T: Held + 'static>(held: &Arc<T>) {
        HOLDING.with_borrow_mut(|holding| {
            let is_it =
                |other: &Arc<dyn Held>| std::ptr::addr_eq(Arc::as_ptr(other), Arc::as_ptr(held));
            // Those of one link mostly come in a row.
            if !holding.held.iter().rev().any(is_it) {
                holding.held.push(Arc::clone(held) as Arc<dyn Held>);
            }
        });
    }
}

impl Drop for Together {
    fn drop(&mut self) {
        let held = HOLDING.with_borrow_mut(|holding| {
            holding.depth = holding.depth.saturating_sub(1);
            match holding.depth {
                0 => std::mem::take(&mut holding.held),
                _ => Vec::new(),
            }
        });
        held.iter().for_each(|held| held.flush());
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[derive(Default)]
    struct Counted(AtomicU32);

    impl Held for Counted {
        fn flush(&self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn each_link_is_flushed_once_at_the_end_of_the_outermost() {
        let links = [Arc::new(Counted::default()), Arc::new(Counted::default())];
        let flushes = || [0, 1].map(|at: usize| links[at].0.load(Ordering::Relaxed));
        assert!(!Together::is_begun());
        let outer = Together::begin();
        Together::add(&links[0]);
        let inner = Together::begin();
        Together::add(&links[1]);
        Together::add(&links[0]);
        drop(inner);
        assert_eq!(flushes(), [0, 0]);
        assert!(Together::is_begun());
        drop(outer);
        assert_eq!(flushes(), [1, 1]);
        assert!(!Together::is_begun());
        drop(Together::begin());
        assert_eq!(flushes(), [1, 1], "nothing is held any more");
    }

    #[test]
    fn a_panic_leaves_nothing_behind() {
        let link = Arc::new(Counted::default());
        let held = Arc::clone(&link);
        let thread = std::thread::spawn(move || {
            let _together = Together::begin();
            Together::add(&held);
            panic!("on purpose");
        });
        assert!(thread.join().is_err());
        assert_eq!(link.0.load(Ordering::Relaxed), 1);
    }
}
