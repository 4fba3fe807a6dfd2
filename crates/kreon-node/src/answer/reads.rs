//! Gets, now and in snapshots, and the snapshots.

use std::sync::Arc;

use kreon_base::{Lsn, Result};
use kreon_engine::{Engine, OpenSnapshot, RegionState};
use kreon_replica::machine::primary::Met;
use kreon_wire::{FailureKind, Keys, Reply, SnapshotId, ValuesBody};

use super::asked::Asked;

/// What was met in memory, as the machine of the primary takes it: sampled after the read.
fn met(engine: &Engine, newest: Option<Lsn>) -> Option<Met> {
    let (unlanded_from, tail) = (engine.unlanded_from(), engine.log_tail());
    newest.map(|start| Met {
        start,
        end: tail,
        unlanded_from,
        tail,
    })
}

/// A snapshot shows all that stood in the log before it.
pub fn met_in(snapshot: &OpenSnapshot) -> Option<Met> {
    let upto = snapshot.lsn();
    Some(Met {
        start: upto,
        end: upto,
        unlanded_from: Lsn(0),
        tail: upto,
    })
}

/// A reply without a value.
fn missing() -> Vec<u8> {
    Reply::Value(None).body()
}

/// The body of a reply with the value of a key, and the newest version that was met.
fn value_of(
    engine: &Engine,
    region: &RegionState,
    key: &[u8],
    snapshot: Option<&OpenSnapshot>,
) -> Result<(Option<Vec<u8>>, Option<Lsn>)> {
    // Shown where it stands, copied once into the reply.
    let body = |value: &[u8]| Reply::Value(Some(value)).body();
    match snapshot {
        Some(_) => Ok((engine.get(region, key, snapshot, body)?, None)),
        None => {
            let (found, seen) = engine.get_seen(region, key, body)?;
            Ok((found, seen.newest))
        }
    }
}

impl Asked {
    /// The snapshot that a request names; it is answered if there is none.
    pub fn at(self, id: SnapshotId) -> Option<(Self, Option<Arc<OpenSnapshot>>)> {
        if id == SnapshotId(0) {
            return Some((self, None));
        }
        let of_office = (self.office.term, id);
        let found = self.hosted.snapshots.get(self.due.client(), of_office);
        match found {
            Some((snapshot, _)) => Some((self, Some(snapshot))),
            None => {
                self.refuse(FailureKind::Closed, "the snapshot is closed");
                None
            }
        }
    }

    pub fn get(self, table: &str, key: &[u8], snapshot: SnapshotId) {
        if !self.office.holds().has(table, key) {
            return self.misplaced();
        }
        let Some((asked, snapshot)) = self.at(snapshot) else {
            return;
        };
        let engine = &asked.office.engine;
        let found = asked
            .office
            .existing(table)
            .and_then(|region| match region {
                Some(region) => value_of(engine, &region, key, snapshot.as_deref()),
                None => Ok((None, None)),
            });
        match found {
            Ok((body, newest)) => {
                let met = match &snapshot {
                    Some(snapshot) => met_in(snapshot),
                    None => met(engine, newest),
                };
                let body = body.unwrap_or_else(missing);
                asked.hosted.await_read(&asked.office, met, asked.due, body);
            }
            Err(error) => asked.fail(&error),
        }
    }

    pub fn get_many(self, table: &str, keys: &Keys<'_>, snapshot: SnapshotId) {
        let holds = self.office.holds();
        if !keys.iter().all(|key| holds.has(table, key)) {
            return self.misplaced();
        }
        let Some((asked, snapshot)) = self.at(snapshot) else {
            return;
        };
        let (mut values, mut newest, mut is_full) = (ValuesBody::new(), None, false);
        let engine = &asked.office.engine;
        let mut take = |region: Option<&Arc<RegionState>>, key: &[u8]| -> Result<()> {
            let Some(region) = region else {
                is_full |= values.push(None).is_err();
                return Ok(());
            };
            let pushed = |value: &[u8]| values.push(Some(value)).is_err();
            let found = match &snapshot {
                Some(snapshot) => engine.get(region, key, Some(snapshot), pushed)?,
                None => {
                    let (found, seen) = engine.get_seen(region, key, pushed)?;
                    newest = newest.max(seen.newest);
                    found
                }
            };
            is_full |= match found {
                Some(is_refused) => is_refused,
                None => values.push(None).is_err(),
            };
            Ok(())
        };
        let taken = asked
            .office
            .existing(table)
            .and_then(|region| keys.iter().try_for_each(|key| take(region.as_ref(), key)));
        match taken {
            Err(error) => asked.fail(&error),
            Ok(()) if is_full => asked.refuse(
                FailureKind::TooLarge,
                "the values take more than 17 MiB: ask for fewer at a time",
            ),
            Ok(()) => {
                let met = match &snapshot {
                    Some(snapshot) => met_in(snapshot),
                    None => met(engine, newest),
                };
                let body = values.finish();
                asked.hosted.await_read(&asked.office, met, asked.due, body);
            }
        }
    }

    pub fn snapshot(self) {
        let snapshot = self.office.engine.snapshot();
        let of_office = (self.office.term, &snapshot);
        let kept = self
            .hosted
            .snapshots
            .keep(self.due.client(), of_office, false);
        match kept {
            Some(id) => {
                let body = Reply::Snapshot(id).body();
                let met = met_in(&snapshot);
                self.hosted.await_read(&self.office, met, self.due, body);
            }
            None => self.refuse(FailureKind::Busy, "the client has too many snapshots open"),
        }
    }

    pub fn release(self, snapshot: SnapshotId) {
        self.hosted.snapshots.release(self.due.client(), snapshot);
        self.due.reply(&Reply::Done);
    }
}
