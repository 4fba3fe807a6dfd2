//! Partitions, their device, and what is under way.

use std::collections::BTreeMap;
use std::sync::Arc;

use ::kvell::format::{ItemSeal, State, Timestamp, key_hash, partition_of};
use ::kvell::opening::{Opened, Opening, open, write_last};
use ::kvell::partition::{Durability, FlushWish, Reply, Request, Task, Ticket, Transfer};
use ::kvell::space::{FlushNo, SuperblockPage};
use kreon_base::{Error, ErrorKind, Result};
use kreon_device::Device;
use kreon_format::StoreId;
use kreon_sim::{Dice, SimDevice};

use super::model::KeyModel;
use super::setting::Setting;
use super::verified::verified;

/// Partitions on a device.
pub(super) struct World {
    pub device: Arc<SimDevice>,
    opened: Opened,
    seal: ItemSeal,
    /// Transfers that the partitions gave out, with the number of the partition.
    transfers: Vec<(usize, Transfer)>,
    flush: Option<Flushing>,
    /// The next flush is to come with a superblock.
    marks_due: bool,
    asked: BTreeMap<Ticket, Asked>,
    ticket: u64,
    pub models: Vec<KeyModel>,
}

/// A flush under way.
struct Flushing {
    flush: FlushNo,
    /// The superblock before it, which is not written yet; then the device is not flushed either.
    page: Option<SuperblockPage>,
    /// Sequence of that superblock.
    superblock: Option<u64>,
}

/// A request under way.
#[derive(Clone, Copy, Debug)]
enum Asked {
    /// A get, and the first version that it may see.
    Get { key: usize, floor: usize },
    /// A change, its number, and whether it is to be durable.
    Change {
        key: usize,
        number: usize,
        is_sync: bool,
    },
}

impl World {
    /// Opens what is on the device. The models begin with what the keys have; `None` for a new store.
    pub fn open(device: Arc<SimDevice>, setting: &Setting) -> Result<Self> {
        let opening = Opening {
            partitions: setting.partitions,
            atomic_bytes: setting.atomic_bytes,
            index_key_bytes: setting.index_key_bytes,
            memory_bytes: setting.memory_bytes * usize::from(setting.partitions),
            is_lossless: setting.is_lossless,
            store: Some(StoreId(77)),
            creates: true,
            formats: false,
            threads: 1,
        };
        let mut opened = open(Arc::clone(&device) as _, &opening)?;
        for partition in &mut opened.partitions {
            let parts = partition.parts_mut();
            parts.room.set_stale_max(setting.stale_max);
            parts.slot_bytes_max = parts.slot_bytes_max.min(setting.slot_bytes_max);
        }
        opened.extents.set_step_min(setting.step_min);
        let seal = ItemSeal {
            store: opened.superblocks.store(),
        };
        Ok(Self {
            device,
            opened,
            seal,
            transfers: Vec::new(),
            flush: None,
            marks_due: false,
            asked: BTreeMap::new(),
            ticket: 0,
            models: Vec::new(),
        })
    }

    /// Submits a get of key number `key`.
    pub fn get(&mut self, keys: &[Vec<u8>], key: usize) {
        let floor = self.models.get(key).map_or(0, KeyModel::floor);
        self.ask(keys, key, Task::Get, Asked::Get { key, floor });
    }

    /// Submits a change of key number `key`.
    pub fn change(
        &mut self,
        keys: &[Vec<u8>],
        key: usize,
        value: Option<Vec<u8>>,
        durability: Durability,
    ) {
        let number = self.models[key].begin(value.clone());
        let task = match value {
            Some(value) => Task::Put { value, durability },
            None => Task::Delete { durability },
        };
        let is_sync = durability == Durability::Sync;
        self.ask(
            keys,
            key,
            task,
            Asked::Change {
                key,
                number,
                is_sync,
            },
        );
    }

    /// The value of a key, as a first get of the open store finds it.
    pub fn look(&mut self, keys: &[Vec<u8>], key: usize) -> Result<Option<Vec<u8>>> {
        let ticket = self.send(keys, key, Task::Get);
        let partition = self.partition(&keys[key]);
        loop {
            let replies = self.opened.partitions[partition].replies();
            if let Some((_, reply)) = replies.into_iter().find(|it| it.0 == ticket) {
                return match reply {
                    Reply::Value(value) => Ok(value),
                    Reply::Done | Reply::Tied(_) => Ok(None),
                    Reply::Failed(error) => Err(error),
                };
            }
            self.take_transfers(usize::MAX);
            let last = self.transfers.len();
            assert!(last > 0, "a get waits for nothing");
            self.carry_out(last - 1);
        }
    }

    /// Has partitions give out transfers, up to `depth` in flight for each.
    pub fn take_transfers(&mut self, depth: usize) {
        for (number, partition) in self.opened.partitions.iter_mut().enumerate() {
            let in_flight = self.transfers.iter().filter(|it| it.0 == number).count();
            let mut out = Vec::new();
            partition.transfers(depth.saturating_sub(in_flight).min(1000), &mut out);
            self.transfers
                .extend(out.into_iter().map(|transfer| (number, transfer)));
        }
    }

    /// Ends one of the transfers in flight.
    pub fn end_transfer(&mut self, dice: &mut Dice) -> Result<(), String> {
        if self.transfers.is_empty() {
            return Ok(());
        }
        self.carry_out(dice.below(self.transfers.len() as u64) as usize);
        self.judge_replies()
    }

    /// Begins a flush, goes on with the one under way, or ends it.
    pub fn flush(&mut self, only_if_wished: bool) -> Result<(), String> {
        if let Some(mut flushing) = self.flush.take() {
            return match flushing.page.take() {
                Some(page) => self.flush_device(flushing, Some(page)),
                None => self.end_flush(&flushing),
            };
        }
        if self.opened.clock.has_failed() {
            return self.fail();
        }
        let wishes = self.opened.partitions.iter().map(|it| it.flush_wish());
        let wish = wishes.max().unwrap_or(FlushWish::None);
        if only_if_wished && wish == FlushWish::None {
            return Ok(());
        }
        let Some(flush) = self.opened.clock.begin() else {
            return self.judge_replies();
        };
        let due = std::mem::take(&mut self.marks_due);
        let marks = self.marks();
        let page = due.then(|| self.opened.superblocks.begin(&marks)).flatten();
        let flushing = Flushing {
            flush,
            superblock: page.as_ref().map(|page| page.sequence),
            page,
        };
        if flushing.page.is_some() {
            self.flush = Some(flushing);
            return self.judge_replies();
        }
        self.flush_device(flushing, None)
    }

    /// Writes the superblock, if there is one, and flushes: what has ended up to here is durable then, and not more.
    fn flush_device(
        &mut self,
        flushing: Flushing,
        page: Option<SuperblockPage>,
    ) -> Result<(), String> {
        let written = page.map_or(Ok(()), |it| self.device.write_at(it.offset, &it.page));
        match written.and_then(|()| self.device.flush()) {
            Ok(()) => self.flush = Some(flushing),
            Err(_) => {
                self.opened.clock.fail();
                return self.fail();
            }
        }
        self.judge_replies()
    }

    fn end_flush(&mut self, flushing: &Flushing) -> Result<(), String> {
        if !self.opened.clock.end(flushing.flush) {
            return self.fail();
        }
        if let Some(sequence) = flushing.superblock {
            self.opened.superblocks.is_durable(sequence);
        }
        for partition in &mut self.opened.partitions {
            partition.flushed(flushing.flush, Ok(()));
        }
        self.judge_replies()
    }

    /// Closes the store, whose requests are all settled.
    pub fn close(&mut self) -> Result<()> {
        let marks = self.marks();
        let Opened {
            superblocks,
            extents,
            partitions,
            ..
        } = &self.opened;
        write_last(&*self.device, superblocks, extents, &marks, |image| {
            for (number, partition) in partitions.iter().enumerate() {
                image.add(number, partition.parts())?;
            }
            Ok(())
        })
    }

    /// Tells all partitions that the device has failed.
    fn fail(&mut self) -> Result<(), String> {
        let error = Error::new(ErrorKind::Io, "a flush has failed");
        for partition in &mut self.opened.partitions {
            partition.flushed(0, Err(error.clone()));
        }
        self.judge_replies()
    }

    /// Has the next flush come with the durable marks.
    pub fn ask_for_marks(&mut self) {
        self.marks_due = true;
    }

    fn marks(&self) -> Vec<Timestamp> {
        let marks = self.opened.partitions.iter().map(|it| it.durable_mark());
        marks.collect()
    }

    /// Writes the durable marks into a superblock, by a call that waits.
    pub fn mark(&mut self) -> Result<(), String> {
        let marks = self.marks();
        match self.opened.superblocks.write_marks(State::Dirty, &marks) {
            Ok(()) => Ok(()),
            // Its flush was to cover writes of items, too.
            Err(_) if self.device.faults_met() > 0 => {
                self.opened.clock.fail();
                self.fail()
            }
            Err(error) => Err(error.to_string()),
        }
    }

    /// Carries everything out until nothing is under way.
    pub fn settle(&mut self) -> Result<(), String> {
        self.judge_replies()?;
        for _ in 0..100_000 {
            self.take_transfers(64);
            if !self.transfers.is_empty() {
                self.carry_out(0);
                self.judge_replies()?;
                continue;
            }
            let wishes = self.opened.partitions.iter().map(|it| it.flush_wish());
            if self.flush.is_none() && wishes.max().unwrap_or(FlushWish::None) == FlushWish::None {
                return match self.asked.first_key_value() {
                    None => Ok(()),
                    Some((ticket, asked)) => {
                        Err(format!("{ticket:?} was never answered: {asked:?}"))
                    }
                };
            }
            self.flush(true)?;
        }
        Err("requests go on for ever".into())
    }

    /// Compares the slots in use with what the partitions know to be in them. Everything must be settled.
    pub fn check_slots(&self) -> Result<(), String> {
        for partition in &self.opened.partitions {
            let parts = partition.parts();
            let used: u64 = parts.room.slots().extents().map(|it| u64::from(it.2)).sum();
            let (stale, keys) = (parts.room.stale(), parts.index.len());
            let (copies, tombstones) = (stale.copies(), stale.tombstones());
            let large = parts.large.parts();
            if used != keys + (copies + tombstones + large) as u64 {
                return Err(format!(
                    "{used} slots in use: {keys} keys, {copies} outdated items, {tombstones} tombstones, {large} parts"
                ));
            }
            if parts.large.outdated_parts() > 0 || parts.large.oldest().is_some() {
                return Err("parts of outdated or unfinished values stay in use".into());
            }
        }
        Ok(())
    }

    /// Compares all that is on the device with what the partitions know of it. Nothing may be under way.
    pub fn verify(&self, setting: &Setting) -> Result<(), String> {
        verified(&self.opened, self.seal, setting)
    }

    /// Whether memory stays within its limit, but for cells with I/O under way.
    pub fn check_memory(&self, setting: &Setting) -> Result<(), String> {
        for partition in &self.opened.partitions {
            let parts = partition.parts();
            let used = parts.memory_in_use() - parts.cells.under_way_bytes();
            // Small worlds: a cache that holds nothing, nodes of the index that come by 32.
            let allowed = setting.memory_bytes.max(200 << 10) + (400 << 10);
            if used > allowed {
                return Err(format!(
                    "{used} bytes of memory under a limit of {}",
                    setting.memory_bytes
                ));
            }
        }
        Ok(())
    }

    fn ask(&mut self, keys: &[Vec<u8>], key: usize, task: Task, asked: Asked) {
        // Known before it is sent: the reply may come at once.
        self.asked.insert(Ticket(self.ticket + 1), asked);
        self.send(keys, key, task);
    }

    fn send(&mut self, keys: &[Vec<u8>], key: usize, task: Task) -> Ticket {
        self.ticket += 1;
        let ticket = Ticket(self.ticket);
        let key = keys[key].clone();
        let partition = self.partition(&key);
        self.opened.partitions[partition].submit(Request {
            ticket: Some(ticket),
            key_hash: key_hash(self.seal, &key),
            key,
            task,
        });
        ticket
    }

    fn partition(&self, key: &[u8]) -> usize {
        partition_of(
            key_hash(self.seal, key),
            self.opened.partitions.len() as u32,
        ) as usize
    }

    fn carry_out(&mut self, which: usize) {
        let (number, transfer) = self.transfers.swap_remove(which);
        let partition = &mut self.opened.partitions[number];
        match transfer {
            Transfer::Read {
                tag,
                offset,
                mut buffer,
            } => {
                let outcome = self.device.read_at(offset, &mut buffer);
                partition.ended(tag, outcome, Some(buffer));
            }
            Transfer::Write {
                tag,
                offset,
                buffer,
            } => {
                let outcome = self.device.write_at(offset, &buffer);
                partition.ended(tag, outcome, Some(buffer));
            }
        }
    }

    /// Takes the replies in, and judges them.
    pub fn judge_replies(&mut self) -> Result<(), String> {
        let events = self.device.events();
        for number in 0..self.opened.partitions.len() {
            for (ticket, reply) in self.opened.partitions[number].replies() {
                let Some(asked) = self.asked.remove(&ticket) else {
                    return Err(format!("{ticket:?} was answered twice"));
                };
                self.judge(asked, reply, events)?;
            }
        }
        Ok(())
    }

    fn judge(&mut self, asked: Asked, reply: Reply, events: usize) -> Result<(), String> {
        match (asked, reply) {
            (Asked::Get { key, floor }, Reply::Value(value)) => {
                if self.models[key].may_see(floor, value.as_deref()) {
                    return Ok(());
                }
                let told = value.map(|value| value.len());
                Err(format!(
                    "a get of key {key} gave {told:?} bytes: {:?}",
                    self.models[key]
                ))
            }
            (
                Asked::Change {
                    key,
                    number,
                    is_sync,
                },
                Reply::Done,
            ) => {
                self.models[key].done(number, is_sync.then_some(events));
                Ok(())
            }
            (Asked::Change { key, number, .. }, Reply::Failed(error)) => match error.kind() {
                ErrorKind::OutOfSpace | ErrorKind::InvalidArgument => {
                    self.models[key].refused(number);
                    Ok(())
                }
                // Anything may have become of it.
                ErrorKind::Io | ErrorKind::Poisoned if self.device.faults_met() > 0 => Ok(()),
                _ => Err(format!("a change of key {key} failed: {error}")),
            },
            (Asked::Get { .. }, Reply::Failed(_)) if self.device.faults_met() > 0 => Ok(()),
            (asked, reply) => Err(format!("{asked:?} got {reply:?}")),
        }
    }
}
