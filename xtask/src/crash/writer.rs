//! The process that is killed: threads that write as fast as they can and tell of each
//! acknowledgement, and beside them checkpoints and scans.

use std::fs::File;
use std::io::Write;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use kreon::{Durability, Region, Store, WriteBatch};

use super::ack::Ack;
use super::dice::Dice;
use super::witness::read_pair;
use super::workload::{COUNTER_KEY, Change, Counter, Operation, REGIONS, THREADS, operation};

#[derive(clap::Args)]
pub struct WriterArguments {
    #[arg(long)]
    store: PathBuf,
    #[arg(long)]
    seed: u64,
    #[arg(long)]
    round: u32,
    /// The number of the last counted batch in the store.
    #[arg(long)]
    counter: u64,
    /// Memory budget of the store.
    #[arg(long)]
    memory_bytes: usize,
    /// Size of its L0; without, what the store chooses.
    #[arg(long)]
    l0_bytes: Option<usize>,
    /// How many of the threads write.
    #[arg(long, default_value_t = THREADS)]
    threads: u8,
}

/// Writes until it is killed, or until something fails.
pub fn write(arguments: &WriterArguments) -> Result<()> {
    let mut options = Store::options().memory_bytes(arguments.memory_bytes);
    if let Some(l0_bytes) = arguments.l0_bytes {
        options = options.l0_bytes(l0_bytes);
    }
    let store = options.open(&arguments.store)?;
    let writer = Writer {
        seed: arguments.seed,
        round: arguments.round,
        regions: [store.region(REGIONS[0])?, store.region(REGIONS[1])?],
        counter: Mutex::new(arguments.counter),
        store,
        // Not `stdout()`, which buffers: one line is one system call.
        acks: File::from(std::io::stdout().as_fd().try_clone_to_owned()?),
    };
    std::thread::scope(|scope| {
        for thread in 0..arguments.threads.min(THREADS) {
            let writer = &writer;
            scope.spawn(move || stop_at_failure(writer.write_as(thread)));
        }
        scope.spawn(|| stop_at_failure(writer.checkpoint_now_and_then()));
        scope.spawn(|| stop_at_failure(writer.scan_again_and_again()));
    });
    Ok(())
}

/// One failed thread ends the process: the parent notices that it died by itself.
fn stop_at_failure(outcome: Result<()>) {
    if let Err(error) = outcome {
        eprintln!("crash writer: {error:#}");
        std::process::exit(1);
    }
}

struct Writer {
    seed: u64,
    round: u32,
    store: Store,
    regions: [Region; 2],
    /// The number of the last counted batch; held while one is written, so that they are in order.
    counter: Mutex<u64>,
    acks: File,
}

impl Writer {
    fn write_as(&self, thread: u8) -> Result<()> {
        for sequence in 0.. {
            let operation = operation(self.seed, self.round, thread, sequence);
            let number = self
                .perform(&operation, thread, sequence)
                .with_context(|| format!("thread {thread}, operation {sequence}"))?;
            let ack = Ack {
                thread,
                sequence,
                sync: operation.sync,
                number,
            };
            (&self.acks)
                .write_all(ack.line().as_bytes())
                .context("nobody listens any more")?;
        }
        Ok(())
    }

    /// Returns the number of a counted batch, 0 for any other operation.
    fn perform(&self, operation: &Operation, thread: u8, sequence: u32) -> Result<u64> {
        let durability = match operation.sync {
            true => Durability::Sync,
            false => Durability::Buffered,
        };
        if !operation.batch {
            for &change in &operation.changes {
                self.change(change, durability)?;
            }
            return Ok(0);
        }
        let batch = self.batch(&operation.changes)?;
        if operation.counted {
            return self.write_counted(batch, durability, thread, sequence);
        }
        self.store.write(batch, durability)?;
        Ok(0)
    }

    fn change(&self, change: Change, durability: Durability) -> Result<()> {
        match change {
            Change::Put(slot, version) => {
                let value = version.value(self.seed, slot);
                self.region(slot.region)?
                    .put_with(slot.key(), value, durability)?;
            }
            Change::Delete(slot) => {
                self.region(slot.region)?
                    .delete_with(slot.key(), durability)?;
            }
        }
        Ok(())
    }

    fn batch(&self, changes: &[Change]) -> Result<WriteBatch> {
        let mut batch = WriteBatch::new();
        for &change in changes {
            match change {
                Change::Put(slot, version) => {
                    let value = version.value(self.seed, slot);
                    batch.put(self.region(slot.region)?, slot.key(), value);
                }
                Change::Delete(slot) => batch.delete(self.region(slot.region)?, slot.key()),
            }
        }
        Ok(batch)
    }

    fn write_counted(
        &self,
        mut batch: WriteBatch,
        durability: Durability,
        thread: u8,
        sequence: u32,
    ) -> Result<u64> {
        let Ok(mut last) = self.counter.lock() else {
            bail!("another thread panicked");
        };
        let counter = Counter {
            number: *last + 1,
            round: self.round,
            thread,
            sequence,
        };
        for region in &self.regions {
            batch.put(region, COUNTER_KEY, counter.value());
        }
        self.store.write(batch, durability)?;
        *last = counter.number;
        Ok(counter.number)
    }

    fn region(&self, index: u8) -> Result<&Region> {
        self.regions
            .get(usize::from(index))
            .context("the workload names a region that it does not have")
    }

    fn checkpoint_now_and_then(&self) -> Result<()> {
        let mut dice = Dice::of(&[self.seed, u64::from(self.round)]);
        loop {
            std::thread::sleep(Duration::from_millis(dice.between(0, 400)));
            self.store.checkpoint().context("checkpoint")?;
        }
    }

    /// What a scan sees while all write must be genuine, too.
    fn scan_again_and_again(&self) -> Result<()> {
        loop {
            for (index, region) in (0..).zip(&self.regions) {
                for pair in region.iter() {
                    let (key, value) = pair.context("scan")?;
                    read_pair(self.seed, index, &key, &value)?;
                }
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}
