//! Progress of long work.

/// Progress of a verification or a compaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Progress {
    /// What is done now.
    pub step: &'static str,
    /// Units of work done. Never decreases, and never exceeds the total.
    pub done: u64,
    /// All units of work: the same each time.
    pub total: u64,
}

impl Progress {
    /// The share that is done, 0 to 1: 1 at the end alone.
    pub fn share(&self) -> f64 {
        match self.total {
            0 => 1.0,
            total => self.done as f64 / total as f64,
        }
    }
}

/// Units of work between two calls.
const UNITS_BETWEEN: u64 = 1 << 14;

/// Reports progress to a callback now and then.
pub struct Meter<'a> {
    tell: &'a mut dyn FnMut(Progress),
    now: Progress,
    told: u64,
}

impl<'a> Meter<'a> {
    /// Nothing of the `work` is done yet. One more unit is the end itself.
    pub fn new(tell: &'a mut dyn FnMut(Progress), step: &'static str, work: u64) -> Self {
        let now = Progress {
            step,
            done: 0,
            total: work.saturating_add(1),
        };
        tell(now);
        Self { tell, now, told: 0 }
    }

    /// Another step begins.
    pub fn step(&mut self, step: &'static str) {
        self.now.step = step;
        self.show();
    }

    /// Adds finished units. Work that arrives meanwhile may exceed the total known at the start.
    pub fn add(&mut self, units: u64) {
        let most = self.now.total - 1;
        self.now.done = self.now.done.saturating_add(units).min(most);
        if self.now.done - self.told >= UNITS_BETWEEN {
            self.show();
        }
    }

    /// All is done.
    pub fn finish(mut self) {
        self.now.done = self.now.total;
        self.show();
    }

    fn show(&mut self) {
        self.told = self.now.done;
        (self.tell)(self.now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_never_goes_back_and_is_whole_at_the_end_alone() {
        let mut told = Vec::new();
        let mut tell = |progress: Progress| told.push(progress);
        let mut meter = Meter::new(&mut tell, "one", 100_000);
        (0..60).for_each(|_| meter.add(1000));
        meter.step("two");
        // More than was known.
        (0..60).for_each(|_| meter.add(1000));
        meter.finish();
        assert!(told.len() > 5 && told.len() < 20, "{}", told.len());
        assert!(told.is_sorted_by_key(|progress| progress.done));
        let (last, others) = told.split_last().unwrap();
        assert!(others.iter().all(|progress| progress.share() < 1.0));
        assert_eq!((last.share(), last.step), (1.0, "two"));
    }
}
