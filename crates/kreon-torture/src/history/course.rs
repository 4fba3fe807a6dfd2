//! The course of a transaction up to its commit: what it has read, what it is to write, and what must not have changed.

use std::collections::BTreeMap;

use kreon_engine::{Isolation, KeyBounds, Own, Savepoint, Transaction};
use kreon_judge::{Register, Seen, Version};

use super::handle::Handle;
use super::moment::Moment;
use super::reader::{any_bounds, few_keys};
use super::session::{End, Session};
use super::values;

const BYTES_MAX: usize = 16 << 20;

/// The key that may be written in place of a wanted one.
pub type Allowed<'a> = &'a dyn Fn(&Handle, usize) -> usize;

/// What a transaction is to write, and whether it deletes.
pub type OwnWrites = BTreeMap<Register, Option<Version>>;

/// See the module's text.
pub struct Course {
    /// The transaction.
    pub transaction: Transaction,
    /// What it has read.
    pub moment: Moment,
    /// Whose reads are kept.
    pub isolation: Isolation,
    own: OwnWrites,
    /// What it has read and nobody may have changed at the commit.
    kept: BTreeMap<Register, Seen>,
    savepoints: Vec<(Savepoint, OwnWrites)>,
}

impl Course {
    /// A transaction that begins now.
    pub fn begin(session: &mut Session<'_>) -> Self {
        let isolation = session.world.crowd.any_isolation(&mut session.dice);
        let invoked = session.world.now();
        let transaction = session.world.engine.transaction(isolation, BYTES_MAX);
        Self {
            transaction,
            // Named as other moments of the log's order.
            moment: Moment::new("snapshot", invoked, session.world.now()),
            isolation,
            own: BTreeMap::new(),
            kept: BTreeMap::new(),
            savepoints: Vec::new(),
        }
    }

    /// What it is to write, and all that must be at its commit as it has read it.
    pub fn settled(&self) -> (OwnWrites, BTreeMap<Register, Seen>) {
        let mut kept = self.kept.clone();
        // Whoever has changed what it writes came first.
        let known = |register: &Register| Some((*register, self.moment.known(*register)?));
        kept.extend(self.own.keys().filter_map(known));
        (self.own.clone(), kept)
    }

    /// One more read or write.
    ///
    /// # Errors
    /// What the store should not have said.
    pub fn step(&mut self, session: &mut Session<'_>, allowed: Allowed<'_>) -> Result<(), End> {
        let handle = session.any_fixed_region();
        match session.dice.below(16) {
            0..6 => self.get(session, &handle),
            6..8 => self.scan(session, &handle),
            8 => self.delete_range(session, &handle, allowed),
            9 => self.savepoint(session),
            _ => {
                let key = allowed(&handle, session.any_key());
                self.write(session, &handle, key)
            }
        }
    }

    fn write(&mut self, session: &mut Session<'_>, handle: &Handle, key: usize) -> Result<(), End> {
        let bytes = &session.world.keys[key];
        let version = (session.dice.below(5) > 0).then(|| session.world.next_version());
        let said = match version {
            Some(version) => {
                let len_bytes = session.world.taste.len_bytes(&mut session.dice);
                let value = values::encode(version, len_bytes);
                self.transaction.put(&handle.region, bytes, &value)
            }
            None => self.transaction.delete(&handle.region, bytes),
        };
        said.map_err(|error| session.refused("write of a transaction", &error))?;
        self.own.insert(handle.register(key), version);
        Ok(())
    }

    /// Deletes a few keys or many, unless some of them belong to a load.
    fn delete_range(
        &mut self,
        session: &mut Session<'_>,
        handle: &Handle,
        allowed: Allowed<'_>,
    ) -> Result<(), End> {
        let (bounds, front, back) = few_keys(session);
        if (front..back).any(|key| allowed(handle, key) != key) {
            return Ok(());
        }
        if session.dice.below(2) == 0 {
            // All that is known of the range is kept, whatever the isolation.
            self.scan_within(session, handle, (bounds.clone(), front, back), usize::MAX)?;
        }
        let said = self.transaction.delete_range(&handle.region, bounds);
        said.map_err(|error| session.refused("deletion of a range", &error))?;
        let deleted = (front..back).map(|key| (handle.register(key), None));
        self.own.extend(deleted);
        Ok(())
    }

    /// Sets a savepoint, or returns to one.
    fn savepoint(&mut self, session: &mut Session<'_>) -> Result<(), End> {
        let count = self.savepoints.len() as u64;
        let at = session.dice.below(count + 1) as usize;
        let Some((savepoint, own)) = self.savepoints.get(at).cloned() else {
            let set = (self.transaction.set_savepoint(), self.own.clone());
            self.savepoints.push(set);
            return Ok(());
        };
        let said = self.transaction.roll_back_to(savepoint);
        said.map_err(|error| session.refused("return to a savepoint", &error))?;
        self.savepoints.truncate(at + 1);
        self.own = own;
        Ok(())
    }

    fn get(&mut self, session: &mut Session<'_>, handle: &Handle) -> Result<(), End> {
        let key = session.any_key();
        let bytes = &session.world.keys[key];
        let is_for_update = session.dice.below(3) == 0;
        let said = match is_for_update {
            true => self.transaction.get_for_update(&handle.region, bytes, Own),
            false => self.transaction.get(&handle.region, bytes, Own),
        };
        let value = said.map_err(|error| session.refused("get of a transaction", &error))?;
        let version = value.map(|value| values::decode(&value)).transpose()?;
        let seen = version.map_or(Seen::Absent, Seen::Version);
        self.learn(handle.register(key), seen, is_for_update)?;
        Ok(())
    }

    fn scan(&mut self, session: &mut Session<'_>, handle: &Handle) -> Result<(), End> {
        let within = any_bounds(session);
        let pairs = match session.dice.below(2) {
            0 => session.dice.below(6) as usize,
            _ => usize::MAX,
        };
        self.scan_within(session, handle, within, pairs)
    }

    /// Takes up to `pairs` pairs, from the front, from the back, or from both in turns.
    fn scan_within(
        &mut self,
        session: &mut Session<'_>,
        handle: &Handle,
        (bounds, mut front, mut back): (KeyBounds, usize, usize),
        pairs: usize,
    ) -> Result<(), End> {
        let way = session.dice.below(5);
        let mut seen = Vec::new();
        let said = self.transaction.scan(&handle.region, bounds);
        let mut scan = said.map_err(|error| session.refused("scan of a transaction", &error))?;
        for _ in 0..pairs {
            let is_from_front = way < 2 || way == 4 && session.dice.below(2) == 0;
            let said = scan.next(is_from_front);
            let pair = said.map_err(|error| session.refused("scan of a transaction", &error))?;
            let Some((key, value)) = pair else {
                seen.extend((front..back).map(|key| (key, Seen::Absent)));
                break;
            };
            let key = session.world.key_number(&key)?;
            if !(front..back).contains(&key) {
                return Err(End::Failed(format!(
                    "a transaction's scan of the keys {front} to {back} shows key {key}"
                )));
            }
            let passed = match is_from_front {
                true => front..key,
                false => key + 1..back,
            };
            seen.extend(passed.map(|key| (key, Seen::Absent)));
            seen.push((key, Seen::Version(values::decode(&value)?)));
            match is_from_front {
                true => front = key + 1,
                false => back = key,
            }
        }
        drop(scan);
        for (key, seen) in seen {
            self.learn(handle.register(key), seen, false)?;
        }
        Ok(())
    }

    /// A read says this: of an own write, or of the moment of the beginning.
    fn learn(&mut self, register: Register, seen: Seen, is_for_update: bool) -> Result<(), String> {
        if let Some(own) = self.own.get(&register) {
            let own = own.map_or(Seen::Absent, Seen::Version);
            return match own == seen {
                true => Ok(()),
                false => Err(format!("a transaction wrote {own:?} and reads {seen:?}")),
            };
        }
        self.moment.learn(register, seen)?;
        if is_for_update || self.isolation == Isolation::Serializable {
            self.kept.insert(register, seen);
        }
        Ok(())
    }
}
