//! Tasks that wait for the load of a page that another task or thread began.
//!
//! A task whose [`wait`](LoadWaiters::wait) returned true is woken by the end of the load. Threads wait on the condition
//! variable of the page's shard instead.

use std::task::Waker;

#[cfg(loom)]
use kreon_base::sync::Mutex;
use kreon_base::sync::{AtomicUsize, Ordering::SeqCst, fence};
use kreon_base::{PageNo, wake};
#[cfg(not(loom))]
use parking_lot::Mutex;

/// Wakers by page.
pub(crate) struct LoadWaiters {
    /// Length of the list: the end of a load takes the lock only if it is not zero.
    count: AtomicUsize,
    list: Mutex<Vec<(PageNo, Waker)>>,
}

impl LoadWaiters {
    /// No waiters.
    pub(super) fn new() -> Self {
        Self {
            count: AtomicUsize::new(0),
            list: Mutex::new(Vec::new()),
        }
    }

    /// Registers `waker` for the end of the load of `page`. False if `is_loading` says that the load has ended
    /// already: then the waker may never be called.
    pub(super) fn wait(
        &self,
        page: PageNo,
        waker: &Waker,
        is_loading: impl FnOnce() -> bool,
    ) -> bool {
        let mut list = self.list.lock();
        let known = list
            .iter()
            .any(|(waits_for, known)| *waits_for == page && known.will_wake(waker));
        if !known {
            list.push((page, waker.clone()));
            self.count.store(list.len(), SeqCst);
        }
        // Either the end of the load sees the count, or `is_loading` sees the end.
        fence(SeqCst);
        if is_loading() {
            return true;
        }
        // An entry that was there before belongs to another part of the same task, which relies on it. The end of
        // the load is about to call it.
        if !known {
            list.pop();
            self.count.store(list.len(), SeqCst);
        }
        false
    }

    /// Moves the waiters of `page`, whose load has just ended, to `taken`. The caller wakes them while it holds no
    /// lock.
    pub(crate) fn take(&self, page: PageNo, taken: &mut Vec<Waker>) {
        fence(SeqCst);
        if self.count.load(SeqCst) == 0 {
            return;
        }
        let mut list = self.list.lock();
        let mut at = 0;
        while let Some((waits_for, _)) = list.get(at) {
            if *waits_for == page {
                taken.push(list.swap_remove(at).1);
            } else {
                at += 1;
            }
        }
        self.count.store(list.len(), SeqCst);
    }

    /// Wakes the waiters of `page`, whose load has just ended. The caller holds no lock.
    pub(crate) fn wake(&self, page: PageNo) {
        let mut taken = Vec::new();
        self.take(page, &mut taken);
        taken.into_iter().for_each(wake);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::Arc;
    use std::task::Wake;

    use super::*;

    struct Calls(AtomicUsize);

    impl Wake for Calls {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, SeqCst);
        }
    }

    #[test]
    fn a_part_of_a_task_that_comes_too_late_leaves_the_other_parts_waiting() {
        let waiters = LoadWaiters::new();
        let calls = Arc::new(Calls(AtomicUsize::new(0)));
        let waker = Waker::from(Arc::clone(&calls));
        assert!(waiters.wait(PageNo(3), &waker, || true));
        // The load has ended, but has not called anybody yet.
        assert!(!waiters.wait(PageNo(3), &waker, || false));
        waiters.wake(PageNo(3));
        assert_eq!(calls.0.load(SeqCst), 1);
        assert!(!waiters.wait(PageNo(3), &waker, || false));
        assert_eq!(waiters.count.load(SeqCst), 0, "nothing is left behind");
    }
}

#[cfg(all(test, loom))]
mod models {
    use std::sync::Arc;
    use std::task::Wake;

    use kreon_base::sync::{Ordering::AcqRel, Ordering::Relaxed, explore};

    use super::*;

    const LOADING: usize = 1;
    const RESIDENT: usize = 2;

    struct Flag(AtomicUsize);

    impl Wake for Flag {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, SeqCst);
        }
    }

    #[test]
    fn model_who_waits_for_a_load_is_woken_or_sees_its_end() {
        explore("waiters: a load, two tasks", None, || {
            let waiters = Arc::new(LoadWaiters::new());
            let page = Arc::new(AtomicUsize::new(LOADING));
            let task = |waiters: Arc<LoadWaiters>, page: Arc<AtomicUsize>| {
                loom::thread::spawn(move || {
                    let flag = Arc::new(Flag(AtomicUsize::new(0)));
                    let waker = Waker::from(Arc::clone(&flag));
                    let waits = waiters.wait(PageNo(3), &waker, || page.load(Relaxed) == LOADING);
                    (waits, flag)
                })
            };
            let tasks = [(); 2].map(|()| task(Arc::clone(&waiters), Arc::clone(&page)));
            page.compare_exchange(LOADING, RESIDENT, AcqRel, Relaxed)
                .expect("only this thread ends the load");
            waiters.wake(PageNo(3));
            for task in tasks {
                let (waits, flag) = task.join().expect("no panic");
                assert!(!waits || flag.0.load(SeqCst) == 1, "a task sleeps forever");
            }
            assert_eq!(waiters.count.load(SeqCst), 0);
        });
    }
}
