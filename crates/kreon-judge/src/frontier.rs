//! Every state that the registers can be in, moment by moment.
//!
//! The search follows the clock. A *configuration* says which of the calls under way have taken effect
//! and what the registers hold then; the frontier is the set of all that explain everything so far.
//! A write takes effect only when some call that ends now cannot do without it (any other order has
//! one of these as its beginning); a read takes effect as soon as it fits, since that changes nothing.
//! If no configuration is left when a call ends, there is no order at all.
//!
//! What keeps the frontier small is that versions are unique: one that is overwritten never comes
//! back, so it may be overwritten only after everybody who reads it. And versions that nobody will ask
//! for any more are all the same.

use std::collections::BTreeSet;

use crate::dense::{ABSENT, Dense, DenseCall, PRESENT};

/// Most calls under way at once.
const SLOTS: usize = 128;

/// Most configurations; with more there is no verdict.
const CONFIGURATIONS_MAX: usize = 20_000;

/// Up to so many are compared pairwise.
const PAIRWISE_MAX: usize = 64;

/// One explanation of everything so far.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Configuration {
    /// The calls under way that have taken effect, by their slots.
    done: u128,
    /// Registers that hold something else than in the base, ascending.
    changed: Vec<(u32, u32)>,
}

/// No configuration is left, or too many.
pub enum Stop {
    /// There is no order.
    Nothing,
    /// There may be one.
    TooMany,
}

/// See the module's text.
pub struct Frontier<'a> {
    history: &'a Dense,
    /// What the registers hold where a configuration says nothing else.
    base: Vec<u32>,
    configurations: Vec<Configuration>,
    /// Which call is in which slot.
    slots: [Option<u32>; SLOTS],
    /// By version: reads of it that have not begun and must happen.
    reads_to_begin: Vec<u32>,
    /// By version: reads of it that have not ended.
    reads_to_end: Vec<u32>,
    /// By register: reads of anything in it that have not ended.
    presence_to_end: Vec<u32>,
    /// Durable calls that have not ended.
    durable_to_end: u32,
    durable_slots: u128,
    /// The most configurations there were.
    pub widest: usize,
}

impl<'a> Frontier<'a> {
    /// Before the first event.
    pub fn new(history: &'a Dense) -> Self {
        let mut reads_to_begin = vec![0; history.versions];
        let mut reads_to_end = reads_to_begin.clone();
        let mut presence_to_end = vec![0; history.before.len()];
        let mut durable_to_end = 0;
        for call in &history.calls {
            for &(register, held) in &call.reads {
                reads_to_begin[held as usize] += u32::from(call.returns);
                reads_to_end[held as usize] += 1;
                presence_to_end[register as usize] += u32::from(held == PRESENT);
            }
            durable_to_end += u32::from(call.is_durable);
        }
        Self {
            history,
            base: history.before.clone(),
            configurations: vec![Configuration::default()],
            slots: [None; SLOTS],
            reads_to_begin,
            reads_to_end,
            presence_to_end,
            durable_to_end,
            durable_slots: 0,
            widest: 1,
        }
    }

    /// A call begins.
    pub fn begin(&mut self, number: u32) -> Result<(), Stop> {
        let slot = self.slots.iter().position(Option::is_none);
        let slot = slot.ok_or(Stop::TooMany)?;
        self.slots[slot] = Some(number);
        let call = self.call(number);
        for &(_, held) in &call.reads {
            self.reads_to_begin[held as usize] -= u32::from(call.returns);
        }
        if call.is_durable {
            self.durable_slots |= 1 << slot;
        }
        if call.writes.is_empty() {
            let mut configurations = std::mem::take(&mut self.configurations);
            for configuration in &mut configurations {
                if self.fits(configuration, call) {
                    configuration.done |= 1 << slot;
                }
            }
            self.configurations = configurations;
        }
        Ok(())
    }

    /// A call ends: it has taken effect in every configuration that is left.
    pub fn end(&mut self, number: u32) -> Result<(), Stop> {
        let slot = self.slots.iter().position(|held| *held == Some(number));
        let slot = slot.ok_or(Stop::Nothing)?;
        if self.configurations.iter().any(|c| c.done >> slot & 1 == 0) {
            let mut left = BTreeSet::new();
            for configuration in &self.configurations {
                match configuration.done >> slot & 1 {
                    1 => drop(left.insert(configuration.clone())),
                    _ => self.reach(configuration.clone(), slot, &mut left)?,
                }
            }
            if left.is_empty() {
                return Err(Stop::Nothing);
            }
            self.configurations = left.into_iter().collect();
        }
        let call = self.call(number);
        for &(register, held) in &call.reads {
            self.reads_to_end[held as usize] -= 1;
            self.presence_to_end[register as usize] -= u32::from(held == PRESENT);
        }
        self.durable_to_end -= u32::from(call.is_durable);
        self.durable_slots &= !(1 << slot);
        self.slots[slot] = None;
        for configuration in &mut self.configurations {
            configuration.done &= !(1 << slot);
        }
        self.tidy();
        Ok(())
    }

    /// The states that the register may be in now.
    pub fn possible(&self, register: u32) -> BTreeSet<u32> {
        let all = self.configurations.iter();
        all.map(|c| self.held(c, register)).collect()
    }

    fn call(&self, number: u32) -> &'a DenseCall {
        &self.history.calls[number as usize]
    }

    fn under_way(&self) -> impl Iterator<Item = (usize, &'a DenseCall)> + '_ {
        let slots = self.slots.iter().enumerate();
        slots.filter_map(|(slot, held)| Some((slot, self.call((*held)?))))
    }

    fn held(&self, configuration: &Configuration, register: u32) -> u32 {
        let changed = &configuration.changed;
        match changed.binary_search_by_key(&register, |(register, _)| *register) {
            Ok(at) => changed[at].1,
            Err(_) => self.base[register as usize],
        }
    }

    fn fits(&self, configuration: &Configuration, call: &DenseCall) -> bool {
        let durable_done = (configuration.done & self.durable_slots).count_ones();
        if call.is_recovery && durable_done != self.durable_to_end {
            return false;
        }
        call.reads.iter().all(|&(register, wanted)| {
            let held = self.held(configuration, register);
            held == wanted || wanted == PRESENT && held != ABSENT
        })
    }

    /// All ways from `from` to configurations in which the call in `slot` has taken effect, each with
    /// as few writes as it can do with.
    fn reach(
        &self,
        from: Configuration,
        slot: usize,
        reached: &mut BTreeSet<Configuration>,
    ) -> Result<(), Stop> {
        let writes: Vec<_> = self
            .under_way()
            .filter(|(_, call)| !call.writes.is_empty())
            .collect();
        let mut seen = BTreeSet::from([from.clone()]);
        let mut open = vec![from];
        while let Some(configuration) = open.pop() {
            for (writer, call) in &writes {
                let Some(next) = self.after(&configuration, *writer, call) else {
                    continue;
                };
                if next.done >> slot & 1 == 1 {
                    reached.insert(next);
                } else if seen.insert(next.clone()) {
                    open.push(next);
                }
                if seen.len() + reached.len() > CONFIGURATIONS_MAX {
                    return Err(Stop::TooMany);
                }
            }
        }
        Ok(())
    }

    /// `configuration` after the write in `slot`, if that can come next.
    fn after(
        &self,
        configuration: &Configuration,
        slot: usize,
        call: &DenseCall,
    ) -> Option<Configuration> {
        if configuration.done >> slot & 1 == 1 || !self.fits(configuration, call) {
            return None;
        }
        let mut next = configuration.clone();
        next.done |= 1 << slot;
        for &(register, version) in &call.writes {
            let old = self.held(configuration, register);
            if old > PRESENT && self.is_awaited(&next, register, old) {
                return None;
            }
            let held = self.plain(version);
            match next.changed.binary_search_by_key(&register, |(r, _)| *r) {
                Ok(at) => next.changed[at].1 = held,
                Err(at) => next.changed.insert(at, (register, held)),
            }
        }
        for (reader, call) in self.under_way() {
            let is_open = call.writes.is_empty() && next.done >> reader & 1 == 0;
            if is_open && self.fits(&next, call) {
                next.done |= 1 << reader;
            }
        }
        Some(next)
    }

    /// Whether somebody reads this version who has not done so.
    fn is_awaited(&self, configuration: &Configuration, register: u32, version: u32) -> bool {
        if self.reads_to_end[version as usize] == 0 {
            return false;
        }
        let wanted = (register, version);
        self.reads_to_begin[version as usize] > 0
            || self.under_way().any(|(slot, call)| {
                let is_open = configuration.done >> slot & 1 == 0 && call.returns;
                is_open && call.reads.binary_search(&wanted).is_ok()
            })
    }

    /// A version that nobody will read any more is like any other.
    fn plain(&self, version: u32) -> u32 {
        match version > PRESENT && self.reads_to_end[version as usize] == 0 {
            true => PRESENT,
            false => version,
        }
    }

    /// Forgets the configurations that others can do all for, and puts into the base what all agree on.
    fn tidy(&mut self) {
        self.widest = self.widest.max(self.configurations.len());
        if let [only] = self.configurations.as_mut_slice() {
            for (register, held) in only.changed.drain(..) {
                self.base[register as usize] = held;
            }
            return;
        }
        let mut all = std::mem::take(&mut self.configurations);
        for (_, held) in all.iter_mut().flat_map(|c| &mut c.changed) {
            *held = self.plain(*held);
        }
        all.sort_unstable();
        all.dedup();
        if all.len() <= PAIRWISE_MAX {
            self.drop_dominated(&mut all);
        }
        self.configurations = all;
        self.rebase();
    }

    fn drop_dominated(&self, all: &mut Vec<Configuration>) {
        let mut at = 0;
        while at < all.len() {
            let others = all.iter().enumerate().filter(|(other, _)| *other != at);
            let mut others = others.map(|(_, other)| other);
            match others.any(|other| self.does_all_for(other, &all[at])) {
                true => drop(all.remove(at)),
                false => at += 1,
            }
        }
    }

    /// Whether whatever explains the rest from `less` explains it from `more`, too.
    fn does_all_for(&self, more: &Configuration, less: &Configuration) -> bool {
        let differing = more.done ^ less.done;
        let has_all = more.done & less.done == less.done;
        let is_write = |slot: usize| {
            let call = self.slots[slot].map(|number| self.call(number));
            call.is_none_or(|call| !call.writes.is_empty())
        };
        if !has_all || (0..SLOTS).any(|slot| differing >> slot & 1 == 1 && is_write(slot)) {
            return false;
        }
        let registers = more.changed.iter().chain(&less.changed);
        registers.into_iter().all(|&(register, _)| {
            let (held, other) = (self.held(more, register), self.held(less, register));
            let other = self.plain(other);
            self.plain(held) == other
                || held == ABSENT
                    && other == PRESENT
                    && self.presence_to_end[register as usize] == 0
        })
    }

    fn rebase(&mut self) {
        let mut registers: Vec<u32> = self
            .configurations
            .iter()
            .flat_map(|c| c.changed.iter().map(|(register, _)| *register))
            .collect();
        registers.sort_unstable();
        registers.dedup();
        for register in registers {
            let mut held = self.configurations.iter().map(|c| self.held(c, register));
            let first = held.next().unwrap_or(ABSENT);
            let plain = self.plain(first);
            if held.all(|other| self.plain(other) == plain) {
                self.base[register as usize] = first;
                for configuration in &mut self.configurations {
                    configuration.changed.retain(|(r, _)| *r != register);
                }
            }
        }
    }
}
