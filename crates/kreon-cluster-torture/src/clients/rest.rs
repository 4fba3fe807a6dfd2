//! A moment of rest: everything is read, and the stretch before it is judged.

use std::time::{Duration, Instant};

use kreon_judge::Call;

use super::face::{Enter, Said, Store};
use super::ledger::{Cut, Ledger};
use super::session::{Log, Session, Shared};

/// Number of who reads at rest, in the stories of violations.
const READER: u32 = 999;

/// How texts of broken promises begin.
pub const VIOLATION: &str = "VIOLATION";

/// Limit of its calls.
const LIMIT: Duration = Duration::from_secs(5);

/// Judges what clients did since the last rest; a [`Ledger`] for each range.
///
/// # Errors
/// What cannot be; also a range that cannot be read within `patience` although nothing is broken.
pub fn rest(
    shared: &Shared,
    ledgers: &mut [Ledger],
    enter: &Enter<'_>,
    log: &mut Log,
    cut: Option<Cut>,
    patience: Duration,
) -> Result<(), String> {
    if let Some(text) = shared.wrong.lock().take() {
        return Err(broken(&text));
    }
    let until = Instant::now() + patience;
    let mut last = Vec::new();
    for range in 0..ledgers.len() {
        last.push(read(shared, enter, range, until)?);
    }
    let mut calls: Vec<Vec<Call>> = ledgers.iter().map(|_| Vec::new()).collect();
    for (range, call) in std::mem::take(&mut log.calls) {
        calls[range].push(call);
    }
    for (range, ((ledger, calls), last)) in ledgers.iter_mut().zip(calls).zip(last).enumerate() {
        ledger.settle(calls, last, cut).map_err(|text| {
            broken(&format!(
                "range {range}, where register 0x5 is key {range:02}-005: {text}"
            ))
        })?;
    }
    Ok(())
}

/// A promise is broken, which is worse than a cluster that does not go on.
fn broken(text: &str) -> String {
    format!("{VIOLATION}: {text}")
}

fn read(shared: &Shared, enter: &Enter<'_>, range: usize, until: Instant) -> Result<Call, String> {
    let mut session = Session::new(shared, READER, 0);
    loop {
        let outcome = enter(LIMIT)
            .map_err(Said::Refused)
            .and_then(|mut store| session.read_all(store.as_mut() as &mut dyn Store, range));
        if let Some(text) = shared.wrong.lock().take() {
            return Err(broken(&text));
        }
        match outcome {
            Ok(call) => return Ok(call),
            Err(Said::Wrong(text)) => return Err(broken(&text)),
            Err(said) if Instant::now() > until => {
                return Err(format!(
                    "range {range} cannot be read although everything works again: {said:?}"
                ));
            }
            Err(_) => std::thread::sleep(Duration::from_millis(50)),
        }
    }
}

#[cfg(test)]
mod tests {
    use kreon_sim::Dice;

    use super::*;
    use crate::clients::crowd::{Crowd, work};
    use crate::clients::keys::Keys;
    use crate::clients::pretended::{Flaw, Pretended};
    use crate::clock::Clock;

    /// At most so many stretches on a store with a flaw.
    fn verdict(flaw: Flaw, stretches: u32) -> Result<u64, String> {
        let keys = Keys {
            ranges: 2,
            each: 10,
        };
        let shared = Shared::new(keys, Clock::begin());
        let mut ledgers = [Ledger::default(), Ledger::default()];
        let store = Pretended::new(flaw);
        let enter = |_| Ok(Box::new(store.clone()) as Box<dyn Store>);
        let crowd = Crowd {
            clients: 3,
            pace: Duration::from_micros(300),
            probe: Duration::from_millis(1),
            limit: Duration::from_secs(1),
        };
        let mut dice = Dice::new(1);
        for _ in 0..stretches {
            let sleep = || std::thread::sleep(Duration::from_millis(150));
            let (mut log, ()) = work(crowd, &shared, &mut dice, &enter, sleep);
            assert!(!log.acks.is_empty());
            let patience = Duration::from_secs(1);
            rest(&shared, &mut ledgers, &enter, &mut log, None, patience)?;
        }
        assert_eq!(
            ledgers.iter().map(|ledger| ledger.undecided).sum::<u64>(),
            0
        );
        Ok(ledgers.iter().map(|ledger| ledger.judged).sum())
    }

    #[test]
    fn a_store_that_keeps_its_promises_is_not_accused() {
        assert!(verdict(Flaw::None, 4).unwrap() > 100);
        assert!(verdict(Flaw::LostReplies, 4).unwrap() > 100);
    }

    #[test]
    fn every_flaw_is_noticed() {
        for flaw in [
            Flaw::StaleRead,
            Flaw::LostWrite,
            Flaw::TornBatch,
            Flaw::Repeated,
        ] {
            // A stale read shows when nobody else wrote in between: within the first stretch as a rule, not for certain.
            let verdict = verdict(flaw, 40);
            assert!(verdict.is_err(), "{flaw:?}");
        }
    }
}
