//! The session of a client: its number, its dice, and the calls that it recorded.

use kreon_base::{Error, ErrorKind, Result as Said};
use kreon_engine::Durability;
use kreon_judge::{Call, Seen};
use kreon_sim::Dice;

use super::handle::Handle;
use super::world::World;

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

/// What every action of a client needs.
pub struct Session<'w> {
    /// What all clients share.
    pub world: &'w World,
    /// Which client this is, from 0.
    pub number: u32,
    /// Where its choices come from.
    pub dice: Dice,
    /// What it did and saw.
    pub calls: Vec<Call>,
    /// One of so many of its writes is durable when it returns.
    pub sync_every: u64,
}

impl<'w> Session<'w> {
    /// One that recorded nothing yet.
    pub fn new(world: &'w World, number: u32, sync_every: u64, seed: u64) -> Self {
        Self {
            world,
            number,
            dice: Dice::new(seed),
            calls: Vec::new(),
            sync_every,
        }
    }

    /// Any region: now and then one that may be gone.
    pub fn any_region(&mut self) -> Handle {
        let names = self.world.passing.len() as u64;
        if names > 0 && self.dice.below(6) == 0 {
            let name = self.dice.below(names) as usize;
            if let Some(handle) = self.world.passing[name].lock().clone() {
                return handle;
            }
        }
        self.any_fixed_region()
    }

    /// A region that is never dropped.
    pub fn any_fixed_region(&mut self) -> Handle {
        let fixed = &self.world.fixed;
        fixed[self.dice.below(fixed.len() as u64) as usize].clone()
    }

    /// Any key; half of the time one of the first few.
    pub fn any_key(&mut self) -> usize {
        let keys = self.world.keys.len() as u64;
        match self.dice.below(2) {
            0 => self.dice.below(keys.min(4)) as usize,
            _ => self.dice.below(keys) as usize,
        }
    }

    /// Durable or not, as often as the mix has it.
    pub fn any_durability(&mut self) -> Durability {
        match self.dice.below(self.sync_every) {
            0 => Durability::Sync,
            _ => Durability::Buffered,
        }
    }

    /// A call of this client that has read and written nothing yet.
    pub fn call(&self, what: &'static str) -> Call {
        Call {
            client: self.number,
            ..Call::read(what, 0, 0)
        }
    }

    /// Records a call with its outcome.
    pub fn record(&mut self, mut call: Call, outcome: Said<()>) -> Result<(), End> {
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
    pub fn refused(&self, what: &str, error: &Error) -> End {
        match self.world.is_cut() {
            true => End::Cut,
            false => End::Failed(format!("{what}: {error}")),
        }
    }

    /// Records what a read of a key returned.
    pub fn record_read(
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

    /// Records what a read of a key told, or that its region was gone.
    pub fn record_seen(
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
}
