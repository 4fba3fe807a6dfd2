//! Threads that insert replayed records into L0 while the calling thread reads and checks the log.
//!
//! An insert costs several times the read and check of a record. Any thread may take any batch of records, because L0
//! orders versions by LSN, not by arrival.

use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::{Builder, Scope};

use kreon_base::{Attributes, Error, LogOffset, Lsn, RegionId, Result};
use kreon_device::processors;
use kreon_format::RecordKind;
use kreon_l0::L0;
use kreon_log::ReplayRecord;

use super::replayed::{TOGETHER, insert};
use crate::image::room::Room;
use kreon_sync::Mutex;

/// Bytes of keys and short values in one batch.
const BATCH_BYTES: usize = 64 << 10;

/// Capacity of the queue; with the batches in work about 1 MiB.
const BATCHES_WAITING: usize = 8;

/// Batches that the calling thread inserts itself before it starts threads: a short log does not pay for threads, and
/// its replay stays deterministic.
const BATCHES_ALONE: usize = 32;

/// Most threads; one reader of the log keeps no more busy.
const THREADS_MAX: usize = 6;

/// Copied records.
#[derive(Default)]
struct Batch {
    records: Vec<Gathered>,
    /// Key and value of each record, concatenated.
    bytes: Vec<u8>,
}

struct Gathered {
    lsn: Lsn,
    offset: LogOffset,
    region: RegionId,
    kind: RecordKind,
    key_bytes: u32,
    attributes: Attributes,
    value_bytes: u32,
    /// Whether the value follows the key.
    has_value: bool,
}

/// The replay threads and the open batch.
pub struct Crew<'scope, 'env> {
    scope: &'scope Scope<'scope, 'env>,
    l0: &'scope L0,
    room: &'scope Room,
    batch: Batch,
    /// Batches inserted by the calling thread.
    put_alone: usize,
    /// The queue to the threads; none before they are started.
    batches: Option<SyncSender<Batch>>,
}

impl Crew<'_, '_> {
    /// Queues a record; it is in L0 when [`with_crew`] returns, unless there is no room.
    pub fn insert(&mut self, record: &ReplayRecord<'_>) -> Result<()> {
        let value_bytes = record.value.unwrap_or_default().len();
        if !self.room.admits(self.l0, record.key.len() + value_bytes) {
            return Ok(());
        }
        let Batch { records, bytes } = &mut self.batch;
        records.push(Gathered {
            lsn: record.lsn,
            offset: record.offset,
            region: record.region,
            kind: record.kind,
            key_bytes: record.key.len() as u32,
            attributes: record.attributes,
            value_bytes: record.value_bytes,
            has_value: record.value.is_some(),
        });
        bytes.extend_from_slice(record.key);
        bytes.extend_from_slice(record.value.unwrap_or_default());
        let is_full = bytes.len() + records.len() * size_of::<Gathered>() >= BATCH_BYTES;
        match is_full {
            true => self.hand_over(),
            false => Ok(()),
        }
    }

    fn hand_over(&mut self) -> Result<()> {
        let batch = std::mem::take(&mut self.batch);
        if self.batches.is_none() && self.put_alone >= BATCHES_ALONE {
            self.batches = self.start()?;
        }
        let Some(batches) = &self.batches else {
            self.put_alone += 1;
            batch.put(self.l0);
            return Ok(());
        };
        let ended = |_| Error::invalid("the threads that replay the log ended early");
        batches.send(batch).map_err(ended)
    }

    /// Starts the threads; none on a single processor.
    fn start(&self) -> Result<Option<SyncSender<Batch>>> {
        let processors = processors();
        if processors == 1 {
            return Ok(None);
        }
        let (batches, waiting) = sync_channel::<Batch>(BATCHES_WAITING);
        let waiting = Arc::new(Mutex::new(waiting));
        for _ in 0..processors.min(THREADS_MAX) {
            let (waiting, l0) = (Arc::clone(&waiting), self.l0);
            let body = move || {
                loop {
                    // One thread waits for a batch, the others for the lock.
                    let batch = waiting.lock().recv();
                    match batch {
                        Ok(batch) => batch.put(l0),
                        Err(_) => return,
                    }
                }
            };
            Builder::new()
                .name("kreon-replay".into())
                .spawn_scoped(self.scope, body)
                .map_err(|error| Error::io("start a thread that replays the log", error))?;
        }
        Ok(Some(batches))
    }
}

impl Batch {
    fn put(&self, l0: &L0) {
        let mut rest = self.bytes.as_slice();
        let mut take = |count: usize| {
            let (taken, behind) = rest.split_at_checked(count).unwrap_or_default();
            rest = behind;
            taken
        };
        let mut together = Vec::with_capacity(TOGETHER);
        for record in &self.records {
            let key = take(record.key_bytes as usize);
            let bytes =
                (record.value_bytes as usize).saturating_sub(record.attributes.stored_bytes());
            let value = record.has_value.then(|| take(bytes));
            together.push(ReplayRecord {
                lsn: record.lsn,
                offset: record.offset,
                region: record.region,
                kind: record.kind,
                key,
                attributes: record.attributes,
                value_bytes: record.value_bytes,
                value,
            });
            if together.len() == TOGETHER {
                insert(l0, &together);
                together.clear();
            }
        }
        insert(l0, &together);
    }
}

/// Runs `work` with a crew; on return all its records are in `l0`, but for those that had no `room`.
///
/// # Errors
/// Those of `work`; `Io` if a thread cannot be started.
pub fn with_crew<R>(
    (l0, room): (&L0, &Room),
    work: impl FnOnce(&mut Crew<'_, '_>) -> Result<R>,
) -> Result<R> {
    std::thread::scope(|scope| {
        let mut crew = Crew {
            scope,
            l0,
            room,
            batch: Batch::default(),
            put_alone: 0,
            batches: None,
        };
        let outcome = work(&mut crew)?;
        crew.hand_over()?;
        // Dropping the crew closes the channel, which ends the threads; the scope joins them.
        Ok(outcome)
    })
}
