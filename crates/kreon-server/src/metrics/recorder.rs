//! How often commands ran and how long they took, for each thread.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use hdrhistogram::Histogram;
use parking_lot::Mutex;

use crate::command::Command;

/// Two digits of a time are told apart: 5 KiB for each command and thread.
const DIGITS: u8 = 2;
/// Longer times count as this.
const TIME_NS_MAX: u64 = 60_000_000_000;

/// Of one command.
#[derive(Clone, Debug)]
pub(crate) struct CommandFigures {
    /// Times in nanoseconds, from the previous reply of the turn or its begin on.
    pub times_ns: Histogram<u64>,
    pub total: Duration,
    /// Error replies.
    pub failed: u64,
    /// Requests that were refused before they ran.
    pub refused: u64,
}

impl CommandFigures {
    fn new() -> Option<Self> {
        Some(Self {
            times_ns: Histogram::new_with_bounds(1, TIME_NS_MAX, DIGITS).ok()?,
            total: Duration::ZERO,
            failed: 0,
            refused: 0,
        })
    }

    fn add(&mut self, other: &Self) {
        // The bounds are the same.
        let _ = self.times_ns.add(&other.times_ns);
        self.total += other.total;
        self.failed += other.failed;
        self.refused += other.refused;
    }
}

/// What happened to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Done,
    Failed,
    Refused,
}

/// A request that was answered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answered {
    pub command: &'static Command,
    pub took: Duration,
    pub outcome: Outcome,
}

#[derive(Debug, Default)]
struct Figures {
    /// By [`Id`](crate::command::Id).
    commands: Vec<Option<Box<CommandFigures>>>,
    /// Replies of requests that were no commands.
    unknown: u64,
    received_bytes: u64,
    sent_bytes: u64,
    violations: u64,
    /// Error replies by their code.
    errors: BTreeMap<String, u64>,
}

/// The figures of one thread: its lock is free, but while somebody reads them.
#[derive(Debug, Default)]
pub(crate) struct Recorder {
    figures: Mutex<Figures>,
}

impl Recorder {
    /// Counts a turn of a connection.
    pub(crate) fn turn(&self, answered: &[Answered], received_bytes: usize, sent_bytes: usize) {
        let mut figures = self.figures.lock();
        figures.received_bytes += received_bytes as u64;
        figures.sent_bytes += sent_bytes as u64;
        for one in answered {
            let place = one.command.id as usize;
            if figures.commands.len() <= place {
                figures.commands.resize(place + 1, None);
            }
            let Some(slot) = figures.commands.get_mut(place) else {
                continue;
            };
            if slot.is_none() {
                *slot = CommandFigures::new().map(Box::new);
            }
            let Some(command) = slot else { continue };
            if one.outcome == Outcome::Refused {
                command.refused += 1;
                continue;
            }
            command.failed += u64::from(one.outcome == Outcome::Failed);
            command.total += one.took;
            command
                .times_ns
                .saturating_record(one.took.as_nanos().max(1) as u64);
        }
    }

    /// Counts an error reply.
    pub(crate) fn error(&self, text: &str) {
        /// Clients cannot make up codes, but the texts of errors may hold what they sent.
        const CODES_MAX: usize = 64;
        let code = text.split(' ').next().unwrap_or_default();
        let mut figures = self.figures.lock();
        if let Some(count) = figures.errors.get_mut(code) {
            *count += 1;
        } else if figures.errors.len() < CODES_MAX {
            figures.errors.insert(code.to_owned(), 1);
        }
    }

    /// Counts a request for a command that there is not.
    pub(crate) fn unknown(&self) {
        self.figures.lock().unknown += 1;
    }

    /// Counts bytes that were no request.
    pub(crate) fn violation(&self) {
        self.figures.lock().violations += 1;
    }
}

/// The sums over all threads.
#[derive(Debug, Default)]
pub(crate) struct Totals {
    /// In the order of the table; only commands that came.
    pub commands: Vec<(&'static Command, CommandFigures)>,
    pub requests: u64,
    pub received_bytes: u64,
    pub sent_bytes: u64,
    pub violations: u64,
    pub errors: BTreeMap<String, u64>,
}

impl Totals {
    /// The times of all commands together.
    pub(crate) fn times_ns(&self) -> Option<Histogram<u64>> {
        let mut all = CommandFigures::new()?;
        for (_, figures) in &self.commands {
            all.add(figures);
        }
        Some(all.times_ns)
    }
}

/// One recorder for each thread.
#[derive(Debug)]
pub(crate) struct Recorders(Vec<Arc<Recorder>>);

impl Recorders {
    pub(crate) fn new(threads: usize) -> Self {
        Self((0..threads).map(|_| Arc::default()).collect())
    }

    /// That of a thread.
    pub(crate) fn of(&self, thread: usize) -> Arc<Recorder> {
        self.0.get(thread).cloned().unwrap_or_default()
    }

    /// What all threads counted.
    pub(crate) fn totals(&self) -> Totals {
        let mut totals = Totals::default();
        let mut sums: BTreeMap<usize, CommandFigures> = BTreeMap::new();
        for recorder in &self.0 {
            let figures = recorder.figures.lock();
            totals.requests += figures.unknown;
            totals.received_bytes += figures.received_bytes;
            totals.sent_bytes += figures.sent_bytes;
            totals.violations += figures.violations;
            for (code, count) in &figures.errors {
                *totals.errors.entry(code.clone()).or_default() += count;
            }
            for (place, command) in figures.commands.iter().enumerate() {
                let Some(command) = command else { continue };
                match sums.get_mut(&place) {
                    Some(sum) => sum.add(command),
                    None => {
                        sums.insert(place, CommandFigures::clone(command));
                    }
                }
            }
        }
        for command in crate::command::all() {
            if let Some(figures) = sums.remove(&(command.id as usize)) {
                totals.requests += figures.times_ns.len() + figures.refused;
                totals.commands.push((command, figures));
            }
        }
        totals
    }

    /// Begins anew.
    pub(crate) fn reset(&self) {
        for recorder in &self.0 {
            *recorder.figures.lock() = Figures::default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::find;

    #[test]
    fn totals_are_the_sums_of_all_threads() {
        let recorders = Recorders::new(2);
        let command = find(b"get").unwrap();
        for (thread, outcome) in [
            (0, Outcome::Done),
            (1, Outcome::Failed),
            (1, Outcome::Refused),
        ] {
            let answered = Answered {
                command,
                took: Duration::from_micros(10),
                outcome,
            };
            recorders.of(thread).turn(&[answered], 100, 7);
        }
        recorders.of(0).error("ERR wrong");
        let totals = recorders.totals();
        assert_eq!(
            (totals.requests, totals.received_bytes, totals.sent_bytes),
            (3, 300, 21)
        );
        let [(found, figures)] = &totals.commands[..] else {
            panic!("{totals:?}");
        };
        assert_eq!(found.id, command.id);
        assert_eq!(
            (figures.times_ns.len(), figures.failed, figures.refused),
            (2, 1, 1)
        );
        assert_eq!(figures.total, Duration::from_micros(20));
        assert_eq!(totals.errors["ERR"], 1);
        recorders.reset();
        assert!(recorders.totals().commands.is_empty());
    }
}
