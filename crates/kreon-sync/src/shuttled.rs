//! Shuttle's primitives in the shape of the ordinary ones. Every operation is a point where another
//! thread may go on; all orderings are sequentially consistent.

use std::ops::{Deref, DerefMut};
use std::time::Duration;

pub use shuttle::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize};
pub use shuttle::sync::{RwLockReadGuard, RwLockWriteGuard};
pub use shuttle::thread::yield_now;

/// A model has no clock: others may go on.
pub fn sleep(_: Duration) {
    yield_now();
}

/// `parking_lot`'s mutex.
#[derive(Debug, Default)]
pub struct Mutex<T>(shuttle::sync::Mutex<T>);

/// A held [`Mutex`]. Empty only while a [`Condvar`] has it.
pub struct MutexGuard<'a, T>(Option<shuttle::sync::MutexGuard<'a, T>>);

impl<T> Mutex<T> {
    /// A free mutex.
    pub const fn new(value: T) -> Self {
        Self(shuttle::sync::Mutex::new(value))
    }

    /// Takes it.
    #[track_caller]
    pub fn lock(&self) -> MutexGuard<'_, T> {
        MutexGuard(Some(self.0.lock().unwrap_or_else(|e| e.into_inner())))
    }

    /// Takes it if it is free.
    #[track_caller]
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        self.0.try_lock().ok().map(|guard| MutexGuard(Some(guard)))
    }
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        match &self.0 {
            Some(guard) => guard,
            None => unreachable!("the guard is with a condition variable"),
        }
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        match &mut self.0 {
            Some(guard) => guard,
            None => unreachable!("the guard is with a condition variable"),
        }
    }
}

/// `parking_lot`'s condition variable.
#[derive(Debug, Default)]
pub struct Condvar(shuttle::sync::Condvar);

impl Condvar {
    /// A condition that nobody waits for.
    pub const fn new() -> Self {
        Self(shuttle::sync::Condvar::new())
    }

    /// Sleeps, unlocked, until woken.
    pub fn wait<T>(&self, guard: &mut MutexGuard<'_, T>) {
        if let Some(held) = guard.0.take() {
            guard.0 = Some(self.0.wait(held).unwrap_or_else(|e| e.into_inner()));
        }
    }

    /// Sleeps, unlocked, until woken or for `limit`. A model has no clock: any time may be over.
    pub fn wait_for<T>(&self, guard: &mut MutexGuard<'_, T>, limit: Duration) {
        if let Some(held) = guard.0.take() {
            let woken = self.0.wait_timeout(held, limit);
            guard.0 = Some(woken.unwrap_or_else(|e| e.into_inner()).0);
        }
    }

    /// Wakes one.
    pub fn notify_one(&self) {
        self.0.notify_one();
    }

    /// Wakes all.
    pub fn notify_all(&self) {
        self.0.notify_all();
    }
}

/// `parking_lot`'s reader-writer lock.
#[derive(Debug, Default)]
pub struct RwLock<T>(shuttle::sync::RwLock<T>);

impl<T> RwLock<T> {
    /// A free lock.
    pub const fn new(value: T) -> Self {
        Self(shuttle::sync::RwLock::new(value))
    }

    /// Takes it for reading.
    #[track_caller]
    pub fn read(&self) -> RwLockReadGuard<'_, T> {
        self.0.read().unwrap_or_else(|e| e.into_inner())
    }

    /// Takes it for writing.
    #[track_caller]
    pub fn write(&self) -> RwLockWriteGuard<'_, T> {
        self.0.write().unwrap_or_else(|e| e.into_inner())
    }
}

/// Runs `model` under `schedules` schedules, half of them random, half with few switches at chosen
/// places (PCT), and says so. A failing schedule is printed, to be run again with `shuttle::replay`.
///
/// # Panics
/// Where the model does in one of them, or its threads block each other.
pub fn explore(name: &str, schedules: usize, model: impl Fn() + Send + Sync + 'static) {
    use shuttle::scheduler::{PctScheduler, RandomScheduler};
    use std::sync::Arc;

    const SEED: u64 = 20_261_121;
    let mut config = shuttle::Config::new();
    config.stack_size = 1 << 20;
    let model = Arc::new(model);
    let start = std::time::Instant::now();
    let (random, ordered) = (Arc::clone(&model), model);
    let scheduler = RandomScheduler::new_from_seed(SEED, schedules / 2);
    shuttle::Runner::new(scheduler, config.clone()).run(move || random());
    let scheduler = PctScheduler::new_from_seed(SEED, 3, schedules / 2);
    shuttle::Runner::new(scheduler, config).run(move || ordered());
    let seconds = start.elapsed().as_secs_f64();
    println!("model {name}: {schedules} schedules from seed {SEED}, {seconds:.1} s");
}
