//! The history of one range, judged from one moment of rest to the next.
//!
//! At rest no client works, all servers do, and what everybody sees is read. A write whose outcome was unknown may be carried
//! out behind that, so it is among the calls of the next stretch, too; one that is later still is an error.

use std::collections::HashSet;

use kreon_judge::{Call, History, Register, Seen, State, Verdict, Version, judge};

/// All memory of the servers was lost at once.
#[derive(Clone, Copy, Debug)]
pub struct Cut {
    /// What had returned by then was in files.
    pub settled: u64,
    /// What had returned by then was acknowledged by who was killed.
    pub killed: u64,
}

/// See the module's text.
#[derive(Debug, Default)]
pub struct Ledger {
    /// At the last rest.
    state: State,
    /// Writes that may come yet.
    late: Vec<Call>,
    /// Calls that were judged.
    pub judged: u64,
    /// Stretches for which too many orders were possible.
    pub undecided: u64,
}

impl Ledger {
    /// Judges the calls since the last rest; `last` is the reading of everything at this one.
    ///
    /// # Errors
    /// No order explains what was seen, with the story of the keys.
    pub fn settle(&mut self, calls: Vec<Call>, last: Call, cut: Option<Cut>) -> Result<(), String> {
        let found = state_of(&last);
        self.judged += calls.len() as u64 + 1;
        match cut {
            None => self.settle_whole(calls, last)?,
            Some(cut) => self.settle_cut(calls, last, cut)?,
        }
        self.state = found;
        Ok(())
    }

    fn settle_whole(&mut self, mut calls: Vec<Call>, last: Call) -> Result<(), String> {
        let unknown = calls.iter().filter(|call| call.returned.is_none());
        let unknown: Vec<Call> = unknown.cloned().collect();
        calls.append(&mut self.late);
        calls.push(last);
        let seen = seen_in(&calls);
        self.judge(calls, None)?;
        let was_seen = |call: &Call| {
            let mut writes = call.writes.iter();
            writes.any(|(register, version)| {
                version.is_some_and(|version| seen.contains(&(*register, version)))
            })
        };
        self.late = unknown;
        self.late.retain(|call| !was_seen(call));
        Ok(())
    }

    /// What was acknowledged shortly before may be lost, but nothing before what is found: that is one moment of the order in
    /// which writes took effect. Single reads tell nothing of that order.
    fn settle_cut(&mut self, mut calls: Vec<Call>, last: Call, cut: Cut) -> Result<(), String> {
        calls.append(&mut self.late);
        let has_returned = |call: &Call| call.returned.is_some_and(|at| at < cut.killed);
        let ordered = calls
            .iter()
            .filter(|call| !call.writes.is_empty() || matches!(call.what, "snapshot" | "scan"));
        let mut ordered: Vec<Call> = ordered.cloned().collect();
        for call in &mut ordered {
            call.is_durable &= has_returned(call);
            call.is_durable |= call.returned.is_some_and(|at| at < cut.settled);
            if !has_returned(call) {
                call.returned = None;
            }
        }
        ordered.retain(|call| call.returned.is_some() || !call.writes.is_empty());
        self.judge(ordered, Some(state_of(&last)))
            .map_err(|text| format!("after all servers were killed: {text}"))?;
        self.judge(calls, None)
    }

    fn judge(&mut self, calls: Vec<Call>, recovered: Option<State>) -> Result<(), String> {
        let mut history = History {
            before: self.state.clone(),
            calls,
            recovered,
        };
        history.forget_unseen();
        match judge(&history) {
            Verdict::Linearizable => Ok(()),
            Verdict::Undecided => {
                self.undecided += 1;
                Ok(())
            }
            Verdict::Wrong(violation) => Err(violation.text),
        }
    }
}

fn state_of(last: &Call) -> State {
    let held = last.reads.iter().filter_map(|(register, seen)| match seen {
        Seen::Version(version) => Some((*register, *version)),
        Seen::Absent | Seen::Present => None,
    });
    held.collect()
}

fn seen_in(calls: &[Call]) -> HashSet<(Register, Version)> {
    let reads = calls.iter().flat_map(|call| &call.reads);
    let versions = reads.filter_map(|(register, seen)| match seen {
        Seen::Version(version) => Some((*register, *version)),
        Seen::Absent | Seen::Present => None,
    });
    versions.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(version: Version, invoked: u64, returned: Option<u64>) -> Call {
        let mut call = Call::read("put", invoked, 0);
        call.returned = returned;
        call.writes = vec![(1, Some(version))];
        call
    }

    fn read(seen: Seen, invoked: u64) -> Call {
        let mut call = Call::read("get", invoked, invoked + 1);
        call.reads = vec![(1, seen)];
        call
    }

    #[test]
    fn what_was_acknowledged_is_there_at_rest() {
        let mut ledger = Ledger::default();
        let calls = vec![write(7, 1, Some(2))];
        let verdict = ledger.settle(calls, read(Seen::Version(7), 3), None);
        assert_eq!(verdict, Ok(()));
        assert!(
            ledger
                .settle(Vec::new(), read(Seen::Absent, 5), None)
                .is_err()
        );
    }

    #[test]
    fn an_unknown_write_may_come_one_stretch_late_but_not_two() {
        for late in [true, false] {
            let mut ledger = Ledger::default();
            let calls = vec![write(7, 1, None)];
            ledger.settle(calls, read(Seen::Absent, 3), None).unwrap();
            if late {
                ledger
                    .settle(Vec::new(), read(Seen::Absent, 5), None)
                    .unwrap();
            }
            let verdict = ledger.settle(Vec::new(), read(Seen::Version(7), 7), None);
            assert_eq!(verdict.is_err(), late, "{verdict:?}");
        }
    }

    #[test]
    fn what_was_seen_of_an_unknown_write_does_not_come_back() {
        let mut ledger = Ledger::default();
        let calls = vec![write(7, 1, None), write(8, 4, Some(5))];
        let mut seen = calls.clone();
        seen.push(read(Seen::Version(7), 2));
        ledger
            .settle(seen, read(Seen::Version(8), 6), None)
            .unwrap();
        assert!(
            ledger
                .settle(Vec::new(), read(Seen::Version(7), 8), None)
                .is_err()
        );
    }

    #[test]
    fn a_cut_takes_a_suffix_but_nothing_settled_and_nothing_durable() {
        let calls = || {
            vec![
                write(1, 1, Some(2)),
                write(2, 5, Some(6)),
                write(3, 7, Some(8)),
            ]
        };
        let cut = Some(Cut {
            settled: 4,
            killed: 9,
        });
        let verdict = |calls: Vec<Call>, found: Seen| {
            let mut ledger = Ledger::default();
            ledger.settle(calls, read(found, 10), cut).is_ok()
        };
        assert!(verdict(calls(), Seen::Version(3)));
        assert!(verdict(calls(), Seen::Version(2)));
        assert!(verdict(calls(), Seen::Version(1)));
        assert!(!verdict(calls(), Seen::Absent));
        let mut durable = calls();
        durable[1].is_durable = true;
        assert!(verdict(durable.clone(), Seen::Version(2)));
        assert!(!verdict(durable, Seen::Version(1)));
        // Before the cut everybody sees what was acknowledged.
        let mut stale = calls();
        stale.push(read(Seen::Version(1), 8));
        assert!(!verdict(stale, Seen::Version(3)));
    }
}
