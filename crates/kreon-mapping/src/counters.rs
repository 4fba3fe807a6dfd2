//! Counters behind the statistics. Each belongs to the part that counts with it.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use kreon_base::Priority;

use crate::shared::StatisticCount;

/// Threads that count their hits in lines of their own; the others share one line.
const HIT_LINES: usize = 64;

/// Classes of priorities that are counted by themselves: each of the lowest, the last, and all between together.
pub(crate) const CLASSES: usize = 48;

/// One number to which all threads add.
#[derive(Default)]
pub(crate) struct Counter(StatisticCount);

/// Counters by thread and class: a hit does not write to memory that other threads write to.
pub(crate) struct ThreadCounters(Box<[CounterLine]>);

/// Counters by class.
pub(crate) struct ClassCounters([Counter; CLASSES]);

#[repr(align(128))]
struct CounterLine([AtomicU64; CLASSES]);

impl Counter {
    pub(crate) fn add(&self, count: u64) {
        self.0.fetch_add(count, Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

impl Default for CounterLine {
    fn default() -> Self {
        Self([const { AtomicU64::new(0) }; CLASSES])
    }
}

impl Default for ClassCounters {
    fn default() -> Self {
        Self([const { Counter(StatisticCount::new(0)) }; CLASSES])
    }
}

impl Default for ThreadCounters {
    fn default() -> Self {
        Self((0..=HIT_LINES).map(|_| CounterLine::default()).collect())
    }
}

impl ThreadCounters {
    /// Memory behind the counters.
    pub(crate) const BYTES: usize = (HIT_LINES + 1) * size_of::<CounterLine>();

    /// Adds one for the thread with this number.
    #[inline]
    pub(crate) fn add(&self, thread: usize, priority: Priority) {
        let class = class(priority);
        if thread < HIT_LINES {
            if let Some(own) = self.0.get(thread).and_then(|line| line.0.get(class)) {
                // No other living thread has the number, so a plain increment loses nothing.
                own.store(own.load(Relaxed) + 1, Relaxed);
            }
        } else if let Some(shared) = self.0.get(HIT_LINES).and_then(|line| line.0.get(class)) {
            shared.fetch_add(1, Relaxed);
        }
    }

    /// The count of a class.
    pub(crate) fn of(&self, class: usize) -> u64 {
        let counters = self.0.iter().filter_map(|line| line.0.get(class));
        counters.map(|counter| counter.load(Relaxed)).sum()
    }

    /// Over all threads and classes.
    pub(crate) fn sum(&self) -> u64 {
        (0..CLASSES).map(|class| self.of(class)).sum()
    }
}

impl ClassCounters {
    /// Adds to the class of a priority.
    pub(crate) fn add(&self, priority: Priority, count: u64) {
        if let Some(counter) = self.0.get(class(priority)) {
            counter.add(count);
        }
    }

    /// The count of a class.
    pub(crate) fn of(&self, class: usize) -> u64 {
        self.0.get(class).map_or(0, Counter::get)
    }

    /// Over all classes.
    pub(crate) fn sum(&self) -> u64 {
        self.0.iter().map(Counter::get).sum()
    }
}

/// The class of a priority.
#[inline]
fn class(priority: Priority) -> usize {
    match priority {
        Priority(u8::MAX) => CLASSES - 1,
        Priority(number) => usize::from(number).min(CLASSES - 2),
    }
}
