//! Loom's primitives with the interface of the ordinary ones.
//!
//! Loom treats sequentially consistent accesses like acquire and release, but its sequentially consistent fences are
//! correct. So such an access brings a fence here, as compilers emit it for machines without such accesses: either
//! behind stores or before loads. A model with such accesses runs in both variants; each finds a different set of
//! accesses that should be sequentially consistent and are not.

use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool as AtomicFlag, AtomicU64 as AtomicCount};
use std::sync::{Arc, Mutex as PlainMutex};

pub use loom::sync::atomic::{AtomicPtr, fence};
pub use loom::thread::yield_now;

use super::{Ordering, SetAlone};

/// In a model time passes only while other threads run.
pub fn spin_loop() {
    loom::thread::yield_now();
}

/// Where the fence is: before sequentially consistent loads (`true`) or behind stores.
static AT_LOADS: AtomicFlag = AtomicFlag::new(false);

/// Whether the model has made a sequentially consistent access.
static ANY_STRONG: AtomicFlag = AtomicFlag::new(false);

fn before_load(order: Ordering) {
    if order == Ordering::SeqCst {
        ANY_STRONG.store(true, Ordering::Relaxed);
        if AT_LOADS.load(Ordering::Relaxed) {
            fence(order);
        }
    }
}

fn behind_store(order: Ordering) {
    if order == Ordering::SeqCst {
        ANY_STRONG.store(true, Ordering::Relaxed);
        if !AT_LOADS.load(Ordering::Relaxed) {
            fence(order);
        }
    }
}

macro_rules! atomic {
    ($name:ident, $value:ty, [$($operation:ident),*]) => {
        #[doc = "As in the standard library."]
        #[derive(Debug)]
        pub struct $name(loom::sync::atomic::$name);

        #[expect(missing_docs, reason = "as in the standard library")]
        impl $name {
            #[track_caller]
            pub fn new(value: $value) -> Self {
                Self(loom::sync::atomic::$name::new(value))
            }

            #[track_caller]
            pub fn load(&self, order: Ordering) -> $value {
                before_load(order);
                self.0.load(order)
            }

            #[track_caller]
            pub fn store(&self, value: $value, order: Ordering) {
                self.0.store(value, order);
                behind_store(order);
            }

            #[track_caller]
            pub fn compare_exchange(
                &self,
                from: $value,
                to: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                before_load(success);
                let found = self.0.compare_exchange(from, to, success, failure);
                behind_store(success);
                found
            }

            #[track_caller]
            pub fn compare_exchange_weak(
                &self,
                from: $value,
                to: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                self.compare_exchange(from, to, success, failure)
            }

            $(
                #[track_caller]
                pub fn $operation(&self, value: $value, order: Ordering) -> $value {
                    before_load(order);
                    let before = self.0.$operation(value, order);
                    behind_store(order);
                    before
                }
            )*
        }

        impl SetAlone<$value> for $name {
            fn set_alone(&mut self, value: $value) {
                self.0.store(value, Ordering::Relaxed);
            }
        }
    };
}

atomic!(AtomicBool, bool, [swap]);
atomic!(
    AtomicU32,
    u32,
    [swap, fetch_add, fetch_sub, fetch_and, fetch_or, fetch_max]
);
atomic!(
    AtomicU64,
    u64,
    [swap, fetch_add, fetch_sub, fetch_and, fetch_or, fetch_max]
);
atomic!(
    AtomicUsize,
    usize,
    [swap, fetch_add, fetch_sub, fetch_and, fetch_or, fetch_max]
);

/// A mutex with the interface of `parking_lot`'s.
#[derive(Debug, Default)]
pub struct Mutex<T>(loom::sync::Mutex<T>);

/// A held [`Mutex`].
pub struct MutexGuard<'a, T>(loom::sync::MutexGuard<'a, T>);

impl<T> Mutex<T> {
    /// An unlocked mutex.
    pub fn new(value: T) -> Self {
        Self(loom::sync::Mutex::new(value))
    }

    /// Locks it.
    #[track_caller]
    pub fn lock(&self) -> MutexGuard<'_, T> {
        MutexGuard(self.0.lock().unwrap_or_else(|e| e.into_inner()))
    }
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

/// A reader-writer lock with the interface of `parking_lot`'s.
#[derive(Debug, Default)]
pub struct RwLock<T>(loom::sync::RwLock<T>);

impl<T> RwLock<T> {
    /// An unlocked lock.
    pub fn new(value: T) -> Self {
        Self(loom::sync::RwLock::new(value))
    }

    /// Locks it for reading.
    #[track_caller]
    pub fn read(&self) -> loom::sync::RwLockReadGuard<'_, T> {
        self.0.read().unwrap_or_else(|e| e.into_inner())
    }

    /// Locks it for writing.
    #[track_caller]
    pub fn write(&self) -> loom::sync::RwLockWriteGuard<'_, T> {
        self.0.write().unwrap_or_else(|e| e.into_inner())
    }
}

/// Runs `model` in every interleaving with at most `preemptions` preemptive switches (`None`: without a limit) and
/// prints their number.
///
/// # Panics
/// If an interleaving panics, or loom finds accesses without an order.
pub fn explore(name: &str, preemptions: Option<usize>, model: impl Fn() + Send + Sync + 'static) {
    static ONE_AT_A_TIME: PlainMutex<()> = PlainMutex::new(());
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(|e| e.into_inner());
    let runs = Arc::new(AtomicCount::new(0));
    let model = Arc::new(model);
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = preemptions.or(builder.preemption_bound);
    builder.max_branches = 20_000;
    let start = std::time::Instant::now();
    ANY_STRONG.store(false, Ordering::Relaxed);
    for at_loads in [false, true] {
        AT_LOADS.store(at_loads, Ordering::Relaxed);
        let (runs, model) = (Arc::clone(&runs), Arc::clone(&model));
        builder.check(move || {
            runs.fetch_add(1, Ordering::Relaxed);
            model();
        });
        if !ANY_STRONG.load(Ordering::Relaxed) {
            break;
        }
    }
    let runs = runs.load(Ordering::Relaxed);
    let bound = match preemptions {
        Some(most) => format!("with up to {most} preemptions"),
        None => "all of them".to_owned(),
    };
    let seconds = start.elapsed().as_secs_f64();
    println!("model {name}: {runs} interleavings, {bound}, {seconds:.1} s");
}
