//! Snapshots and scans that a client holds open between its other calls.

use std::ops::Bound;
use std::sync::Arc;

use kreon_base::{ErrorKind, Result as Said};
use kreon_engine::{KeyBounds, OpenSnapshot, Scan};

use super::call::{Call, Seen};
use super::client::{Client, End};
use super::moment::Moment;
use super::values;
use super::world::{Handle, World};

/// Most snapshots, and most scans, that one client holds.
const HELD_MAX: usize = 3;

const STEP: &str = "step of a scan";

/// See the module's text.
#[derive(Default)]
pub struct Reader {
    moments: Vec<Moment>,
    snapshots: Vec<(Arc<OpenSnapshot>, usize)>,
    scans: Vec<HeldScan>,
}

impl Reader {
    /// Closes everything; what was read.
    pub fn finish(self, client: u32) -> Vec<Call> {
        let moments = self.moments.into_iter();
        moments.map(|moment| moment.into_call(client)).collect()
    }
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

impl Client<'_> {
    pub(super) fn open_snapshot(&mut self) -> Result<(), End> {
        if self.reader.snapshots.len() < HELD_MAX {
            let (open, moment) = self.snapshot("snapshot");
            self.reader.snapshots.push((open, moment));
        }
        Ok(())
    }

    fn snapshot(&mut self, what: &'static str) -> (Arc<OpenSnapshot>, usize) {
        let invoked = self.world.now();
        let open = self.world.engine.snapshot();
        let moment = Moment::new(what, invoked, self.world.now());
        self.reader.moments.push(moment);
        (open, self.reader.moments.len() - 1)
    }

    pub(super) fn close_snapshot(&mut self) -> Result<(), End> {
        let count = self.reader.snapshots.len() as u64;
        if count > 0 {
            let index = self.dice.below(count) as usize;
            self.reader.snapshots.swap_remove(index);
        }
        Ok(())
    }

    pub(super) fn read_snapshot(&mut self) -> Result<(), End> {
        let count = self.reader.snapshots.len() as u64;
        if count == 0 {
            return self.open_snapshot();
        }
        let index = self.dice.below(count) as usize;
        let (open, moment) = self.reader.snapshots[index].clone();
        let handle = self.any_region();
        if self.dice.below(3) == 0 {
            return self.begin_scan(handle, open, moment);
        }
        let key = self.any_key();
        let invoked = self.world.now();
        let engine = &self.world.engine;
        let bytes = &self.world.keys[key];
        let seen = if self.dice.below(4) == 0 {
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
        if let Some(seen) = self.unless_gone(("read of a snapshot", &handle), invoked, seen)? {
            self.reader.moments[moment].learn(handle.register(key), seen?)?;
        }
        Ok(())
    }

    /// `None` if the region was gone. A region may go while snapshots are open: that it was still
    /// there, or not, is told of the time of the read.
    fn unless_gone<T>(
        &mut self,
        (what, handle): (&'static str, &Handle),
        invoked: u64,
        said: Said<T>,
    ) -> Result<Option<T>, End> {
        let mut call = self.call(what);
        call.invoked = invoked;
        call.returned = Some(self.world.now());
        let (told, mark) = match said {
            Ok(told) => (Some(told), Seen::Absent),
            Err(error) if error.kind() == ErrorKind::Closed && handle.may_go => {
                (None, Seen::Present)
            }
            Err(error) => return Err(self.refused(call.what, &error)),
        };
        // A scan may show what it fetched before the region went.
        let tells = mark == Seen::Present || call.what != STEP;
        if handle.may_go && tells {
            call.reads.push((handle.mark(), mark));
            self.calls.push(call);
        }
        Ok(told)
    }

    pub(super) fn open_scan(&mut self) -> Result<(), End> {
        let handle = self.any_region();
        let (open, moment) = self.snapshot("scan");
        self.begin_scan(handle, open, moment)
    }

    fn begin_scan(
        &mut self,
        handle: Handle,
        open: Arc<OpenSnapshot>,
        moment: usize,
    ) -> Result<(), End> {
        let (bounds, front, back) = self.any_bounds();
        let mut scan = self.world.engine.scan(&handle.region, open, bounds);
        let with_values = self.dice.below(4) > 0;
        if !with_values {
            scan.without_values();
        }
        if self.reader.scans.len() == HELD_MAX {
            self.reader.scans.swap_remove(0);
        }
        self.reader.scans.push(HeldScan {
            scan,
            handle,
            front,
            back,
            with_values,
            moment,
        });
        let newest = self.reader.scans.len() - 1;
        match self.dice.below(3) {
            0 => Ok(()),
            _ => self.step_scan_at(newest, usize::MAX),
        }
    }

    /// Bounds, and the keys within: from the first to behind the last.
    fn any_bounds(&mut self) -> (KeyBounds, usize, usize) {
        let keys = &self.world.keys;
        if self.dice.below(2) == 0 {
            return ((Bound::Unbounded, Bound::Unbounded), 0, keys.len());
        }
        let count = keys.len() as u64;
        let (low, high) = (
            self.dice.below(count) as usize,
            self.dice.below(count) as usize,
        );
        let (low_bound, front) = match self.dice.below(3) {
            0 => (Bound::Unbounded, 0),
            1 => (Bound::Included(keys[low].clone()), low),
            _ => (Bound::Excluded(keys[low].clone()), low + 1),
        };
        let (high_bound, back) = match self.dice.below(3) {
            0 => (Bound::Unbounded, keys.len()),
            1 => (Bound::Included(keys[high].clone()), high + 1),
            _ => (Bound::Excluded(keys[high].clone()), high),
        };
        ((low_bound, high_bound), front.min(back), back)
    }

    pub(super) fn step_scan(&mut self) -> Result<(), End> {
        let count = self.reader.scans.len() as u64;
        if count == 0 {
            return self.open_scan();
        }
        let index = self.dice.below(count) as usize;
        let pairs = self.dice.below(40) as usize;
        self.step_scan_at(index, pairs)
    }

    /// Takes up to `pairs` pairs, from the front, from the back, or from both in turns.
    fn step_scan_at(&mut self, index: usize, pairs: usize) -> Result<(), End> {
        let way = self.dice.below(3);
        for _ in 0..pairs {
            let from_front = way == 0 || way == 2 && self.dice.below(2) == 0;
            let invoked = self.world.now();
            let held = &mut self.reader.scans[index];
            let (handle, moment) = (held.handle.clone(), held.moment);
            let was_at_end = held.front >= held.back;
            let said = held.step(self.world, from_front);
            let Some(told) = self.unless_gone((STEP, &handle), invoked, said)? else {
                self.reader.scans.swap_remove(index);
                return Ok(());
            };
            for (key, seen) in told? {
                self.reader.moments[moment].learn(handle.register(key), seen)?;
            }
            if was_at_end {
                break;
            }
        }
        Ok(())
    }

    pub(super) fn close_scan(&mut self) -> Result<(), End> {
        let count = self.reader.scans.len() as u64;
        if count > 0 {
            let index = self.dice.below(count) as usize;
            self.reader.scans.swap_remove(index);
        }
        Ok(())
    }
}
