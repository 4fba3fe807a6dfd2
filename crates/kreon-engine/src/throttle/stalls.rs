//! Stalls: when writers began to wait and when the last of them went on, told once for all of them.

use std::time::{Duration, Instant};

use crate::events::{Event, Events, Stall};
use kreon_sync::{AtomicBool, Mutex, Ordering};

/// Sleeps for scarce space come and go with each look at the space; they are over when there was none for so long.
const QUIET: Duration = Duration::from_secs(1);

/// Writers that wait for one reason.
pub struct Waiting {
    reason: Stall,
    events: Events,
    /// How many wait, and since when any does. Events are told under the lock: in order.
    state: Mutex<Option<(u32, Instant)>>,
}

/// A writer that waits, until this is dropped.
pub struct Stalled<'a>(&'a Waiting);

impl Waiting {
    /// Nobody waits yet.
    pub fn new(reason: Stall, events: &Events) -> Self {
        Self {
            reason,
            events: events.clone(),
            state: Mutex::default(),
        }
    }

    /// A writer begins to wait.
    pub fn begin(&self) -> Stalled<'_> {
        let mut state = self.state.lock();
        match &mut *state {
            Some((count, _)) => *count += 1,
            none => {
                *none = Some((1, Instant::now()));
                let reason = self.reason;
                self.events.tell(&Event::StallBegan { reason });
            }
        }
        Stalled(self)
    }
}

impl Drop for Stalled<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        match &mut *state {
            Some((count, _)) if *count > 1 => *count -= 1,
            last => {
                if let Some((_, since)) = last.take() {
                    self.0.events.tell(&Event::StallEnded {
                        reason: self.0.reason,
                        took: since.elapsed(),
                    });
                }
            }
        }
    }
}

/// Writers that sleep at each write, as space is scarce.
pub struct Sleeping {
    events: Events,
    /// Whether `state` has any: looks at the space are many.
    is_any: AtomicBool,
    state: Mutex<Option<Sleeps>>,
}

struct Sleeps {
    first: Instant,
    last: Instant,
}

impl Sleeping {
    /// Nobody sleeps yet.
    pub fn new(events: &Events) -> Self {
        Self {
            events: events.clone(),
            is_any: AtomicBool::new(false),
            state: Mutex::default(),
        }
    }

    /// A look at the space found that writers sleep from now on, or do not.
    pub fn note(&self, is_asleep: bool) {
        if is_asleep || self.is_any.load(Ordering::Relaxed) {
            self.note_at(Instant::now(), is_asleep);
        }
    }

    fn note_at(&self, now: Instant, is_asleep: bool) {
        let reason = Stall::ScarceSpace;
        let mut state = self.state.lock();
        match (&mut *state, is_asleep) {
            (Some(sleeps), true) => sleeps.last = now,
            (Some(sleeps), false) if now.duration_since(sleeps.last) >= QUIET => {
                let took = sleeps.last.duration_since(sleeps.first);
                *state = None;
                self.is_any.store(false, Ordering::Relaxed);
                self.events.tell(&Event::StallEnded { reason, took });
            }
            (None, true) => {
                *state = Some(Sleeps {
                    first: now,
                    last: now,
                });
                self.is_any.store(true, Ordering::Relaxed);
                self.events.tell(&Event::StallBegan { reason });
            }
            (_, false) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex as StdMutex};

    use super::*;

    type Told = Arc<StdMutex<Vec<(bool, Duration)>>>;

    /// Whether each stall began, or ended after how long.
    fn listener() -> (Told, Events) {
        let told = Told::default();
        let list = Arc::clone(&told);
        let events = Events::of(move |event| {
            list.lock().unwrap().push(match event {
                Event::StallBegan { .. } => (true, Duration::ZERO),
                Event::StallEnded { took, .. } => (false, *took),
                other => panic!("{other:?}"),
            });
        });
        (told, events)
    }

    #[test]
    fn a_stall_lasts_from_the_first_writer_to_the_last() {
        let (told, events) = listener();
        let waiting = Waiting::new(Stall::FullL0, &events);
        let first = waiting.begin();
        let second = waiting.begin();
        drop(first);
        assert_eq!(told.lock().unwrap().len(), 1, "one goes on waiting");
        drop(second);
        drop(waiting.begin());
        let told: Vec<bool> = told.lock().unwrap().iter().map(|told| told.0).collect();
        assert_eq!(told, [true, false, true, false]);
    }

    #[test]
    fn sleeps_with_short_pauses_are_one_stall() {
        let (told, events) = listener();
        let sleeping = Sleeping::new(&events);
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        sleeping.note(false);
        assert!(told.lock().unwrap().is_empty());
        for (ms, is_asleep) in [(0, true), (100, false), (1050, true), (1400, false)] {
            sleeping.note_at(at(ms), is_asleep);
        }
        assert_eq!(told.lock().unwrap().len(), 1);
        sleeping.note_at(at(2050), false);
        sleeping.note_at(at(9000), false);
        let told = told.lock().unwrap().clone();
        assert_eq!(
            told,
            [(true, Duration::ZERO), (false, Duration::from_millis(1050))]
        );
    }
}
