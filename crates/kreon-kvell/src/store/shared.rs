//! What handles and workers have in common.
//!
//! Order of locks: that of one partition at a time and none beside it; then those of the extents and the superblock's,
//! under which no other is taken. At the close several threads have the lock of one partition each, and under it that of the
//! image.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use kreon_base::Result;
use kreon_device::{Device, processors};

use super::bell::Bell;
use super::call::{Answers, Call, Receiver};
use super::refusals::poisoned;
use super::shared_partition::{Needs, SharedPartition};
use super::stats::Stats;
use crate::format::{Classes, ItemSeal, Timestamp, partition_of};
use crate::opening::{shared_out, write_last};
use crate::partition::Reply;
use crate::space::{Extents, FlushClock, SuperblockPage, Superblocks};

/// A store. Partition p belongs to worker p modulo their number.
pub struct Shared {
    pub device: Arc<dyn Device>,
    pub seal: ItemSeal,
    pub clock: Arc<FlushClock>,
    pub partitions: Vec<SharedPartition>,
    /// One for each worker.
    pub bells: Vec<Bell>,
    extents: Arc<Extents>,
    pub superblocks: Arc<Superblocks>,
    /// The next flush is to come with a superblock.
    marks_due: AtomicBool,
    /// All partitions know of the failure of the device.
    is_failure_told: AtomicBool,
    /// Nothing is under way, and workers end.
    is_stopped: AtomicBool,
}

impl Shared {
    pub fn new(
        device: Arc<dyn Device>,
        clock: Arc<FlushClock>,
        (partitions, bells): (Vec<SharedPartition>, Vec<Bell>),
        extents: Arc<Extents>,
        superblocks: Arc<Superblocks>,
    ) -> Self {
        Self {
            device,
            seal: ItemSeal {
                store: superblocks.store(),
            },
            clock,
            partitions,
            bells,
            extents,
            superblocks,
            marks_due: AtomicBool::new(false),
            is_failure_told: AtomicBool::new(false),
            is_stopped: AtomicBool::new(false),
        }
    }

    /// The partition of a key with this hash.
    pub fn partition_of(&self, key_hash: u128) -> usize {
        partition_of(key_hash, self.partitions.len() as u32) as usize
    }

    /// Has the worker of a partition look at it.
    pub fn wake(&self, partition: usize) {
        if let Some(shared) = self.partitions.get(partition) {
            shared.tell();
        }
        if let Some(bell) = self.bells.get(partition % self.bells.len().max(1)) {
            bell.ring();
        }
    }

    /// A caller has been in a partition, and holds no lock.
    pub fn left(&self, partition: usize, needs: Needs) {
        if needs.has_transfers || needs.flush_now {
            self.wake(partition);
        }
        self.attend_failure();
    }

    /// If the device has failed, tells all partitions, once: nobody is to wait for ever. A partition that a request enters
    /// later looks at the clock itself.
    pub fn attend_failure(&self) {
        if !self.clock.has_failed() || self.is_failure_told.swap(true, SeqCst) {
            return;
        }
        let mut answers = Answers::default();
        for (number, partition) in self.partitions.iter().enumerate() {
            // A panic breaks one partition off, which answers its callers; the others are to be told all the same.
            let told = catch_unwind(AssertUnwindSafe(|| partition.failed(&mut answers)));
            answers.hand_out();
            if told.is_ok_and(|needs| needs.anything()) {
                self.wake(number);
            }
        }
        // Last: a subscriber may panic.
        tracing::error!("a write or flush of the volume has failed: the store takes no changes");
    }

    /// Makes durable all changes that were acknowledged before the call.
    pub fn sync(&self) -> Result<()> {
        let call = Call::new(self.partitions.len());
        let mut answers = Answers::default();
        let mut outcome = Ok(());
        for (number, partition) in self.partitions.iter().enumerate() {
            let receiver = || Receiver {
                call: Arc::clone(&call),
                number,
            };
            match partition.sync(receiver, &mut answers) {
                Ok(Some(needs)) => self.left(number, needs),
                Ok(None) => answers.push(receiver(), Reply::Done),
                Err(error) => {
                    answers.push(receiver(), Reply::Failed(error.clone()));
                    outcome = Err(error);
                }
            }
            answers.hand_out();
        }
        for reply in call.wait() {
            if let Some(Reply::Failed(error)) = reply {
                outcome = Err(error);
            }
        }
        outcome
    }

    /// Has workers end when nothing is in flight. Nothing may be under way in any partition.
    pub fn stop(&self) {
        self.is_stopped.store(true, SeqCst);
        self.bells.iter().for_each(Bell::ring);
    }

    pub fn is_stopped(&self) -> bool {
        self.is_stopped.load(SeqCst)
    }

    /// Asks for a superblock with the next flush, if there is anything new to tell. Whether there is.
    pub fn ask_for_marks(&self) -> bool {
        let is_new = !self.clock.has_failed() && self.superblocks.would_change(&self.marks());
        if is_new {
            self.marks_due.store(true, SeqCst);
        }
        is_new
    }

    /// Whether a flush is to come with a superblock.
    pub fn are_marks_due(&self) -> bool {
        self.marks_due.load(SeqCst)
    }

    /// The superblock that was asked for.
    pub fn take_marks(&self) -> Option<SuperblockPage> {
        if !self.are_marks_due() || !self.marks_due.swap(false, SeqCst) {
            return None;
        }
        self.superblocks.begin(&self.marks())
    }

    /// Writes the image of the index and the last superblock of this opening, durably. The workers have ended, and nothing is under way.
    pub fn write_last_marks(&self) -> Result<()> {
        if self.clock.has_failed() {
            return Err(poisoned());
        }
        let (device, extents) = (&*self.device, &self.extents);
        let written = write_last(device, &self.superblocks, extents, &self.marks(), |image| {
            let partitions = self.partitions.iter().enumerate();
            let added = shared_out(partitions, processors(), |(number, partition)| {
                let added = partition.look(|partition| image.add(number, partition.parts()));
                added.unwrap_or_else(|| image.give_up())
            });
            added.map(drop)
        });
        written.inspect_err(|_| self.clock.fail())
    }

    /// Extents in use and given back.
    pub fn extent_counts(&self) -> (u32, u32) {
        self.extents.counts()
    }

    /// The sizes of slots.
    pub fn classes(&self) -> Result<Arc<Classes>> {
        let atomic_bytes = self.superblocks.newest().atomic_bytes;
        Ok(Arc::new(Classes::new(atomic_bytes as usize)?))
    }

    /// The sequence of the last superblock that was begun.
    pub fn sequence(&self) -> u64 {
        self.superblocks.newest().sequence
    }

    /// Figures of all partitions.
    pub fn stats(&self) -> Stats {
        let (extents, free_extents) = self.extents.counts();
        let mut stats = Stats {
            extents: extents.into(),
            free_extents: free_extents.into(),
            device: self.device.stats(),
            ..Stats::default()
        };
        for partition in &self.partitions {
            partition.look(|partition| {
                let parts = partition.parts();
                stats.keys += parts.index.len();
                stats.index_bytes += parts.index.memory_bytes() as u64;
                stats.memory_bytes += parts.memory_in_use() as u64;
                stats.outdated_items += parts.room.stale().copies() as u64;
                stats.tombstones += parts.room.stale().tombstones() as u64;
                stats.large_values += parts.large.len() as u64;
                stats.parts += parts.large.parts() as u64;
                stats.outdated_parts += parts.large.outdated_parts() as u64;
            });
        }
        stats
    }

    /// Each is true when it is taken, without a further flush: a partition counts what flushes made durable whose end it
    /// was told. So the superblock may be written, and become durable, at any time after; and a failure between the two
    /// makes none of them false. What is taken *after* a failure is the mark from before it.
    fn marks(&self) -> Vec<Timestamp> {
        let marks = self.partitions.iter().map(|partition| {
            let mark = partition.look(|partition| partition.durable_mark());
            mark.unwrap_or_default()
        });
        marks.collect()
    }
}
