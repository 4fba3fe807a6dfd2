//! A client: random calls, each recorded with what it saw.

use kreon_base::{Error, ErrorKind, Result as Said};
use kreon_engine::{Durability, Operation, Work};
use kreon_sim::Dice;

use super::call::{Call, Seen};
use super::mix::{Action, Mix};
use super::reader::Reader;
use super::values;
use super::world::{Handle, World};

/// Why a client ended before its time.
pub enum End {
    /// The power was cut.
    Cut,
    /// The store did what it should not.
    Failed(String),
}

impl From<String> for End {
    fn from(text: String) -> Self {
        Self::Failed(text)
    }
}

/// See the module's text.
pub struct Client<'w> {
    pub(super) world: &'w World,
    pub(super) number: u32,
    pub(super) dice: Dice,
    pub(super) calls: Vec<Call>,
    pub(super) reader: Reader,
    mix: Mix,
}

impl<'w> Client<'w> {
    /// A client that has done nothing yet.
    pub fn new(world: &'w World, number: u32, mix: Mix, seed: u64) -> Self {
        Self {
            world,
            number,
            dice: Dice::new(seed),
            calls: Vec::new(),
            reader: Reader::default(),
            mix,
        }
    }

    /// Does `count` calls, or fewer if the world ends. Returns what it recorded.
    ///
    /// # Errors
    /// What the store should not have said.
    pub fn run(mut self, count: u64) -> Result<Vec<Call>, String> {
        for _ in 0..count {
            if self.world.stop.load(std::sync::atomic::Ordering::Relaxed) {
                break;
            }
            match self.step() {
                Ok(()) => {}
                Err(End::Cut) => break,
                Err(End::Failed(text)) => {
                    return Err(format!("client {}: {text}", self.number));
                }
            }
        }
        let moments = self.reader.finish(self.number);
        self.calls.extend(moments);
        Ok(self.calls)
    }

    fn step(&mut self) -> Result<(), End> {
        self.world
            .calls
            .fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        if self.dice.below(8) == 0 {
            std::thread::yield_now();
        }
        match self.mix.pick(&mut self.dice) {
            Action::Put => self.put(),
            Action::Delete => self.delete(),
            Action::Batch => self.batch(),
            Action::Get => (0..1 + self.dice.below(6)).try_for_each(|_| self.get()),
            Action::Contains => self.contains(),
            Action::MultiGet => self.multi_get(),
            Action::GetAsync => self.get_async(),
            Action::OpenSnapshot => self.open_snapshot(),
            Action::ReadSnapshot => self.read_snapshot(),
            Action::CloseSnapshot => self.close_snapshot(),
            Action::OpenScan => self.open_scan(),
            Action::StepScan => self.step_scan(),
            Action::CloseScan => self.close_scan(),
            Action::ChangeRegion => self.change_region(),
            Action::FindRegion => self.find_region(),
            Action::Sync => self.settle("sync", |world| world.engine.sync()),
            Action::Checkpoint => self.settle("checkpoint", |world| world.engine.checkpoint()),
            // As `checkpoint_l0` of a store.
            Action::Image => self.settle("image", |world| {
                world.engine.sync()?;
                world.engine.background(Work::Image)
            }),
            Action::Load => self.ingest(),
        }
    }

    /// Any region: now and then one that may be gone.
    pub(super) fn any_region(&mut self) -> Handle {
        let names = self.world.passing.len() as u64;
        if names > 0 && self.dice.below(6) == 0 {
            let name = self.dice.below(names) as usize;
            if let Some(handle) = self.world.passing[name].lock().clone() {
                return handle;
            }
        }
        self.any_fixed_region()
    }

    pub(super) fn any_fixed_region(&mut self) -> Handle {
        let fixed = &self.world.fixed;
        fixed[self.dice.below(fixed.len() as u64) as usize].clone()
    }

    /// Any key; half of the time one of the first few.
    pub(super) fn any_key(&mut self) -> usize {
        let keys = self.world.keys.len() as u64;
        match self.dice.below(2) {
            0 => self.dice.below(keys.min(4)) as usize,
            _ => self.dice.below(keys) as usize,
        }
    }

    fn put(&mut self) -> Result<(), End> {
        let (handle, key) = (self.any_region(), self.any_key());
        self.write("put", &[(handle, key, true)])
    }

    fn delete(&mut self) -> Result<(), End> {
        let (handle, key) = (self.any_region(), self.any_key());
        self.write("delete", &[(handle, key, false)])
    }

    fn batch(&mut self) -> Result<(), End> {
        let passing = self.any_region();
        // A long one takes long enough for others to look on.
        let count = 2 + match self.dice.below(12) {
            0 | 1 => 60 + self.dice.below(400),
            _ => self.dice.below(7),
        };
        let mut changes = Vec::new();
        for _ in 0..count {
            let fixed = self.any_fixed_region();
            // At most one region that may be gone: its error says which one it was.
            let handle = if self.dice.below(3) == 0 {
                passing.clone()
            } else {
                fixed
            };
            changes.push((handle, self.any_key(), self.dice.below(5) > 0));
        }
        self.write("batch", &changes)
    }

    fn write(&mut self, what: &'static str, changes: &[(Handle, usize, bool)]) -> Result<(), End> {
        let world = self.world;
        world.reserved.beside(|allowed| {
            let allowed = changes
                .iter()
                .map(|(handle, key, is_put)| (handle.clone(), allowed(handle, *key), *is_put));
            self.write_allowed(what, &allowed.collect::<Vec<_>>())
        })
    }

    fn write_allowed(
        &mut self,
        what: &'static str,
        changes: &[(Handle, usize, bool)],
    ) -> Result<(), End> {
        let mut call = self.call(what);
        let mut values = Vec::with_capacity(changes.len());
        for (handle, key, is_put) in changes {
            let version = is_put.then(|| self.world.next_version());
            let len_bytes = match changes.len() {
                0..20 => self.world.taste.len_bytes(&mut self.dice),
                _ => self.dice.below(100) as usize,
            };
            values.push(version.map(|version| values::encode(version, len_bytes)));
            call.writes.push((handle.register(*key), version));
            if handle.may_go {
                call.reads.push((handle.mark(), Seen::Absent));
            }
        }
        call.reads.dedup();
        let with_values = changes.iter().zip(&values);
        let operations: Vec<_> = with_values
            .map(|((handle, key, _), value)| Operation {
                region: &handle.region,
                key: &self.world.keys[*key],
                value: value.as_deref(),
                is_range: false,
            })
            .collect();
        let durability = match self.dice.below(self.mix.sync_every) {
            0 => Durability::Sync,
            _ => Durability::Buffered,
        };
        call.invoked = self.world.now();
        let outcome = self.apply(&operations, durability);
        call.returned = Some(self.world.now());
        call.is_durable = outcome.is_ok() && durability == Durability::Sync;
        self.record(call, outcome)
    }

    /// Records a call with its outcome.
    pub(super) fn record(&mut self, mut call: Call, outcome: Said<()>) -> Result<(), End> {
        let is_guarded = call.reads.iter().any(|(_, seen)| *seen == Seen::Absent);
        let outcome = match outcome {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == ErrorKind::Closed && is_guarded => {
                // Nothing happened, because the region was gone.
                call.writes.clear();
                call.reads.truncate(1);
                call.reads
                    .iter_mut()
                    .for_each(|read| read.1 = Seen::Present);
                Ok(())
            }
            Err(error) => {
                call.returned = None;
                Err(self.refused(call.what, &error))
            }
        };
        self.calls.push(call);
        outcome
    }

    /// An error that no client expects, unless the power is gone.
    pub(super) fn refused(&self, what: &str, error: &Error) -> End {
        match self.world.is_cut() {
            true => End::Cut,
            false => End::Failed(format!("{what}: {error}")),
        }
    }

    pub(super) fn call(&self, what: &'static str) -> Call {
        Call {
            client: self.number,
            ..Call::read(what, 0, 0)
        }
    }

    fn get(&mut self) -> Result<(), End> {
        let (handle, key) = (self.any_region(), self.any_key());
        let (mut call, engine) = (self.call("get"), &self.world.engine);
        call.invoked = self.world.now();
        let outcome = engine.get(&handle.region, &self.world.keys[key], None, values::decode);
        call.returned = Some(self.world.now());
        self.record_read(call, &handle, key, outcome)
    }

    fn contains(&mut self) -> Result<(), End> {
        let (handle, key) = (self.any_region(), self.any_key());
        let (mut call, engine) = (self.call("contains"), &self.world.engine);
        call.invoked = self.world.now();
        let outcome = engine.contains(&handle.region, &self.world.keys[key], None);
        call.returned = Some(self.world.now());
        let seen = outcome
            .as_ref()
            .map_or(Seen::Absent, |is_there| match is_there {
                true => Seen::Present,
                false => Seen::Absent,
            });
        self.record_seen(call, &handle, key, outcome.map(|_| seen))
    }

    pub(super) fn record_read(
        &mut self,
        call: Call,
        handle: &Handle,
        key: usize,
        outcome: Said<Option<Result<u64, String>>>,
    ) -> Result<(), End> {
        let seen = match outcome {
            Ok(Some(Ok(version))) => Ok(Seen::Version(version)),
            Ok(Some(Err(text))) => return Err(End::Failed(format!("{}: {text}", call.what))),
            Ok(None) => Ok(Seen::Absent),
            Err(error) => Err(error),
        };
        self.record_seen(call, handle, key, seen)
    }

    fn record_seen(
        &mut self,
        mut call: Call,
        handle: &Handle,
        key: usize,
        seen: Said<Seen>,
    ) -> Result<(), End> {
        if handle.may_go {
            call.reads.push((handle.mark(), Seen::Absent));
        }
        let outcome = seen.map(|seen| call.reads.push((handle.register(key), seen)));
        if outcome.is_err() && !handle.may_go {
            return outcome.map_err(|error| self.refused(call.what, &error));
        }
        self.record(call, outcome)
    }

    /// Every key of it is a read by itself.
    fn multi_get(&mut self) -> Result<(), End> {
        let handle = self.any_region();
        let count = 1 + self.dice.below(10);
        let numbers: Vec<_> = (0..count).map(|_| self.any_key()).collect();
        let keys: Vec<_> = numbers
            .iter()
            .map(|number| self.world.keys[*number].as_slice())
            .collect();
        let mut found = vec![None; keys.len()];
        let mut call = self.call("multi_get");
        call.invoked = self.world.now();
        let show = |index: usize, value: Vec<u8>| found[index] = Some(values::decode(&value));
        let outcome = self.world.engine.multi_get(&handle.region, &keys, show);
        call.returned = Some(self.world.now());
        for (key, found) in numbers.into_iter().zip(found) {
            self.record_read(call.clone(), &handle, key, outcome.clone().map(|()| found))?;
        }
        Ok(())
    }

    /// Everything that returned before is durable afterwards.
    fn settle(
        &mut self,
        what: &'static str,
        settle: impl Fn(&World) -> Said<()>,
    ) -> Result<(), End> {
        let mut call = self.call(what);
        call.invoked = self.world.now();
        let outcome = settle(self.world);
        call.returned = Some(self.world.now());
        call.is_durable = outcome.is_ok();
        self.record(call, outcome)
    }
}
