//! Who does the work of a worker: its own thread, or one that drives a future.
//!
//! A thread that keeps many requests in flight would wait for the worker's thread, and that one for it: two switches for
//! each batch of requests, while the device runs empty. Instead it takes the worker over for that time, and its thread waits
//! at the post.
//!
//! The worker is behind a lock, which is held over its sleep. Who wants to lead says so first and rings then, so the sleep
//! ends; the worker's thread looks before each turn, under the lock, and waits until the driver has left.

use std::cell::Cell;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{Thread, current, park};

use parking_lot::{Condvar, Mutex, MutexGuard};

use super::shared::Shared;
use super::worker::Worker;

thread_local! {
    static IS_WORKER: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread does the work of a worker, of whichever store: it cannot wait for the end of a request.
pub fn is_worker() -> bool {
    IS_WORKER.get()
}

/// The place of one worker.
pub struct Post {
    /// `None` when it has ended.
    worker: Mutex<Option<Worker>>,
    /// A driver leads, or is about to.
    is_led: AtomicBool,
    /// No driver leads.
    is_free: Condvar,
}

impl Post {
    pub fn new(worker: Worker) -> Self {
        Self {
            worker: Mutex::new(Some(worker)),
            is_led: AtomicBool::new(false),
            is_free: Condvar::new(),
        }
    }

    /// Works in this thread, but for the times when a driver leads, until the store stops.
    pub fn stand(&self) {
        IS_WORKER.set(true);
        let mut place = self.worker.lock();
        let mut is_new = true;
        loop {
            while self.is_led() {
                self.is_free.wait(&mut place);
                is_new = true;
            }
            let Some(worker) = &mut *place else {
                return;
            };
            if std::mem::take(&mut is_new) {
                worker.sit();
            }
            if !worker.turn_or_break_off(&|| self.is_led()) {
                *place = None;
                return;
            }
        }
    }

    fn is_led(&self) -> bool {
        self.is_led.load(SeqCst)
    }

    /// Leads the worker, if no other driver does. `ring` ends its sleep.
    fn lead(&self, ring: impl FnOnce()) -> Option<Lead<'_>> {
        if self.is_led.swap(true, SeqCst) {
            return None;
        }
        ring();
        let mut lead = Lead {
            post: self,
            place: Some(self.worker.lock()),
        };
        lead.worker()?.sit();
        Some(lead)
    }
}

/// A worker that this thread leads.
struct Lead<'a> {
    post: &'a Post,
    /// There until the end.
    place: Option<MutexGuard<'a, Option<Worker>>>,
}

impl Lead<'_> {
    fn worker(&mut self) -> Option<&mut Worker> {
        self.place.as_mut()?.as_mut()
    }

    /// A turn of the worker. `false`: there will be no other.
    fn turn(&mut self, is_urgent: &dyn Fn() -> bool) -> bool {
        let goes_on = match self.worker() {
            Some(worker) => worker.turn_or_break_off(is_urgent),
            None => false,
        };
        if !goes_on && let Some(place) = &mut self.place {
            **place = None;
        }
        goes_on
    }
}

impl Drop for Lead<'_> {
    fn drop(&mut self) {
        // Under the lock, so that the worker's thread cannot look before and sleep after.
        self.post.is_led.store(false, SeqCst);
        self.place = None;
        self.post.is_free.notify_one();
    }
}

/// Polls `future` until it is done, and works as one of the workers meanwhile, if one is not led by another driver.
pub fn drive<F: Future>(shared: &Arc<Shared>, posts: &[Arc<Post>], future: F) -> F::Output {
    let _mark = Mark::set();
    let mut future = pin!(future);
    let mut leads = posts.iter().zip(&shared.bells).enumerate();
    let lead = leads.find_map(|(number, (post, bell))| Some((number, post.lead(|| bell.ring())?)));
    let (number, mut lead) = match lead {
        Some((number, lead)) => (Some(number), Some(lead)),
        None => (None, None),
    };
    let call = Arc::new(Driver {
        is_woken: AtomicBool::new(true),
        thread: current(),
        shared: Arc::clone(shared),
        number,
    });
    let waker = Waker::from(Arc::clone(&call));
    let mut context = Context::from_waker(&waker);
    loop {
        if call.is_woken.swap(false, SeqCst)
            && let Poll::Ready(output) = future.as_mut().poll(&mut context)
        {
            return output;
        }
        match &mut lead {
            Some(led) => {
                if !led.turn(&|| call.is_woken()) {
                    lead = None;
                }
            }
            None if call.is_woken() => {}
            None => park(),
        }
    }
}

/// Has the thread count as a worker's.
struct Mark {
    before: bool,
}

impl Mark {
    fn set() -> Self {
        Self {
            before: IS_WORKER.replace(true),
        }
    }
}

impl Drop for Mark {
    fn drop(&mut self) {
        IS_WORKER.set(self.before);
    }
}

/// Wakes a driver.
struct Driver {
    is_woken: AtomicBool,
    thread: Thread,
    shared: Arc<Shared>,
    /// The worker that it leads.
    number: Option<usize>,
}

impl Driver {
    fn is_woken(&self) -> bool {
        self.is_woken.load(SeqCst)
    }
}

impl Wake for Driver {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if self.is_woken.swap(true, SeqCst) {
            return;
        }
        if let Some(bell) = self.number.and_then(|number| self.shared.bells.get(number)) {
            bell.ring();
        }
        // It may lead no longer.
        self.thread.unpark();
    }
}
