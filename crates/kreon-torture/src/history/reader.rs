//! Snapshots and scans that a client holds open between its other calls.

use std::ops::Bound;
use std::sync::Arc;

use kreon_base::{ErrorKind, Result as Said};
use kreon_engine::{KeyBounds, OpenSnapshot, Scan};
use kreon_judge::{Call, Seen};

use super::handle::Handle;
use super::moment::Moment;
use super::session::{End, Session};
use super::values;
use super::world::World;

/// Most snapshots, and most scans, that one client holds.
const HELD_MAX: usize = 3;

const STEP: &str = "step of a scan";

/// What is open, and what was read of each moment.
#[derive(Default)]
pub struct Reader {
    moments: Vec<Moment>,
    snapshots: Vec<(Arc<OpenSnapshot>, usize)>,
    scans: Vec<HeldScan>,
}

/// An open scan, and which keys of its range it has not reached.
struct HeldScan {
    scan: Scan,
    handle: Handle,
    front: usize,
    back: usize,
    with_values: bool,
    moment: usize,
}

impl HeldScan {
    /// Takes one pair from one end; false at the end.
    fn step(
        &mut self,
        world: &World,
        from_front: bool,
    ) -> Said<Result<Vec<(usize, Seen)>, String>> {
        let with_values = self.with_values;
        let show = |key: &[u8], value: &[u8]| {
            let seen = match with_values {
                true => Seen::Version(values::decode(value)?),
                false => Seen::Present,
            };
            Ok((world.key_number(key)?, seen))
        };
        let found = match from_front {
            true => self.scan.next_with(show)?,
            false => self.scan.next_back_with(show)?,
        };
        Ok(found
            .transpose()
            .and_then(|pair| self.reached(pair, from_front)))
    }

    /// What the next pair tells, of the keys that it passed over, too.
    fn reached(
        &mut self,
        pair: Option<(usize, Seen)>,
        from_front: bool,
    ) -> Result<Vec<(usize, Seen)>, String> {
        let (front, back) = (self.front, self.back);
        let Some((key, seen)) = pair else {
            self.front = back;
            return Ok((front..back).map(|key| (key, Seen::Absent)).collect());
        };
        if !(front..back).contains(&key) {
            return Err(format!(
                "a scan of the keys {front} to {back} shows key {key}"
            ));
        }
        let passed = match from_front {
            true => front..key,
            false => key + 1..back,
        };
        match from_front {
            true => self.front = key + 1,
            false => self.back = key,
        }
        let absent = passed.map(|key| (key, Seen::Absent));
        Ok(absent.chain([(key, seen)]).collect())
    }
}

impl Reader {
    /// Opens a snapshot, unless enough are open.
    pub fn open_snapshot(&mut self, session: &mut Session<'_>) -> Result<(), End> {
        if self.snapshots.len() < HELD_MAX {
            let (open, moment) = self.snapshot(session, "snapshot");
            self.snapshots.push((open, moment));
        }
        Ok(())
    }

    fn snapshot(
        &mut self,
        session: &Session<'_>,
        what: &'static str,
    ) -> (Arc<OpenSnapshot>, usize) {
        let invoked = session.world.now();
        let open = session.world.engine.snapshot();
        let moment = Moment::new(what, invoked, session.world.now());
        self.moments.push(moment);
        (open, self.moments.len() - 1)
    }

    /// Closes a snapshot.
    pub fn close_snapshot(&mut self, session: &mut Session<'_>) -> Result<(), End> {
        let count = self.snapshots.len() as u64;
        if count > 0 {
            let index = session.dice.below(count) as usize;
            self.snapshots.swap_remove(index);
        }
        Ok(())
    }

    /// Reads through an open snapshot, or opens one.
    pub fn read_snapshot(&mut self, session: &mut Session<'_>) -> Result<(), End> {
        let count = self.snapshots.len() as u64;
        if count == 0 {
            return self.open_snapshot(session);
        }
        let index = session.dice.below(count) as usize;
        let (open, moment) = self.snapshots[index].clone();
        let handle = session.any_region();
        if session.dice.below(3) == 0 {
            return self.begin_scan(session, handle, open, moment);
        }
        let key = session.any_key();
        let invoked = session.world.now();
        let engine = &session.world.engine;
        let bytes = &session.world.keys[key];
        let seen = if session.dice.below(4) == 0 {
            let there = engine.contains(&handle.region, bytes, Some(&open));
            there.map(|there| Ok(if there { Seen::Present } else { Seen::Absent }))
        } else {
            let value = engine.get(&handle.region, bytes, Some(&open), values::decode);
            value.map(|value| {
                value
                    .transpose()
                    .map(|v| v.map_or(Seen::Absent, Seen::Version))
            })
        };
        if let Some(seen) = unless_gone(session, ("read of a snapshot", &handle), invoked, seen)? {
            self.moments[moment].learn(handle.register(key), seen?)?;
        }
        Ok(())
    }

    /// Begins a scan of the present.
    pub fn open_scan(&mut self, session: &mut Session<'_>) -> Result<(), End> {
        let handle = session.any_region();
        let (open, moment) = self.snapshot(session, "scan");
        self.begin_scan(session, handle, open, moment)
    }

    fn begin_scan(
        &mut self,
        session: &mut Session<'_>,
        handle: Handle,
        open: Arc<OpenSnapshot>,
        moment: usize,
    ) -> Result<(), End> {
        let (bounds, front, back) = any_bounds(session);
        let mut scan = session.world.engine.scan(&handle.region, open, bounds);
        let with_values = session.dice.below(4) > 0;
        if !with_values {
            scan.without_values();
        }
        if self.scans.len() == HELD_MAX {
            self.scans.swap_remove(0);
        }
        self.scans.push(HeldScan {
            scan,
            handle,
            front,
            back,
            with_values,
            moment,
        });
        let newest = self.scans.len() - 1;
        match session.dice.below(3) {
            0 => Ok(()),
            _ => self.step_scan_at(session, newest, usize::MAX),
        }
    }

    /// Takes some pairs of an open scan, or opens one.
    pub fn step_scan(&mut self, session: &mut Session<'_>) -> Result<(), End> {
        let count = self.scans.len() as u64;
        if count == 0 {
            return self.open_scan(session);
        }
        let index = session.dice.below(count) as usize;
        let pairs = session.dice.below(40) as usize;
        self.step_scan_at(session, index, pairs)
    }

    /// Takes up to `pairs` pairs, from the front, from the back, or from both in turns.
    fn step_scan_at(
        &mut self,
        session: &mut Session<'_>,
        index: usize,
        pairs: usize,
    ) -> Result<(), End> {
        let way = session.dice.below(3);
        for _ in 0..pairs {
            let from_front = way == 0 || way == 2 && session.dice.below(2) == 0;
            let invoked = session.world.now();
            let held = &mut self.scans[index];
            let (handle, moment) = (held.handle.clone(), held.moment);
            let was_at_end = held.front >= held.back;
            let said = held.step(session.world, from_front);
            let Some(told) = unless_gone(session, (STEP, &handle), invoked, said)? else {
                self.scans.swap_remove(index);
                return Ok(());
            };
            for (key, seen) in told? {
                self.moments[moment].learn(handle.register(key), seen)?;
            }
            if was_at_end {
                break;
            }
        }
        Ok(())
    }

    /// Ends a scan.
    pub fn close_scan(&mut self, session: &mut Session<'_>) -> Result<(), End> {
        let count = self.scans.len() as u64;
        if count > 0 {
            let index = session.dice.below(count) as usize;
            self.scans.swap_remove(index);
        }
        Ok(())
    }

    /// Closes everything; what was read.
    pub fn finish(self, client: u32) -> Vec<Call> {
        let moments = self.moments.into_iter();
        moments.map(|moment| moment.into_call(client)).collect()
    }
}

/// `None` if the region was gone. A region may go while snapshots are open: that it was still
/// there, or not, is told of the time of the read.
fn unless_gone<T>(
    session: &mut Session<'_>,
    (what, handle): (&'static str, &Handle),
    invoked: u64,
    said: Said<T>,
) -> Result<Option<T>, End> {
    let mut call = session.call(what);
    call.invoked = invoked;
    call.returned = Some(session.world.now());
    let (told, mark) = match said {
        Ok(told) => (Some(told), Seen::Absent),
        Err(error) if error.kind() == ErrorKind::Closed && handle.may_go => (None, Seen::Present),
        Err(error) => return Err(session.refused(call.what, &error)),
    };
    // A scan may show what it fetched before the region went.
    let tells = mark == Seen::Present || call.what != STEP;
    if handle.may_go && tells {
        call.reads.push((handle.mark(), mark));
        session.calls.push(call);
    }
    Ok(told)
}

/// As [`any_bounds`], most of a few keys.
pub fn few_keys(session: &mut Session<'_>) -> (KeyBounds, usize, usize) {
    if session.dice.below(6) == 0 {
        return any_bounds(session);
    }
    let (front, count) = (session.any_key(), 1 + session.dice.below(4) as usize);
    let keys = &session.world.keys;
    let (start, back) = (keys[front].clone(), (front + count).min(keys.len()));
    let end = keys.get(back).cloned();
    let end = end.map_or(Bound::Unbounded, Bound::Excluded);
    ((Bound::Included(start), end), front, back)
}

/// Bounds, and the keys within: from the first to behind the last.
pub fn any_bounds(session: &mut Session<'_>) -> (KeyBounds, usize, usize) {
    let keys = &session.world.keys;
    if session.dice.below(2) == 0 {
        return ((Bound::Unbounded, Bound::Unbounded), 0, keys.len());
    }
    let count = keys.len() as u64;
    let (low, high) = (
        session.dice.below(count) as usize,
        session.dice.below(count) as usize,
    );
    let (low_bound, front) = match session.dice.below(3) {
        0 => (Bound::Unbounded, 0),
        1 => (Bound::Included(keys[low].clone()), low),
        _ => (Bound::Excluded(keys[low].clone()), low + 1),
    };
    let (high_bound, back) = match session.dice.below(3) {
        0 => (Bound::Unbounded, keys.len()),
        1 => (Bound::Included(keys[high].clone()), high + 1),
        _ => (Bound::Excluded(keys[high].clone()), high),
    };
    ((low_bound, high_bound), front.min(back), back)
}
