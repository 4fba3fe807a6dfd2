//! The workers of a store, from the opening to the close.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use kreon_base::{Error, Result};
use kreon_device::{TransferQueue, take_short_turns};
use parking_lot::{Condvar, Mutex};

use super::bell::Bell;
use super::call::{Answers, Call, Receiver};
use super::post::Post;
use super::refusals::poisoned;
use super::shared::Shared;
use super::shared_partition::SharedPartition;
use super::worker::{PLACES, Worker};
use crate::opening::Opened;

/// A store whose workers run.
pub struct Running {
    pub shared: Arc<Shared>,
    /// One for each worker.
    pub posts: Vec<Arc<Post>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    stage: Mutex<Stage>,
    is_closed: Condvar,
}

/// How workers are set up.
#[derive(Clone, Copy)]
pub struct Crew {
    /// Workers, 1 or more; no more than partitions are started.
    pub workers: usize,
    /// Transfers of partitions in flight for each worker.
    pub depth: usize,
    /// Time between two writes of the durable marks.
    pub marks_every: Duration,
}

enum Stage {
    Open,
    Closing,
    Closed(Result<()>),
}

impl Running {
    /// Starts the workers of a store.
    pub fn start(opened: Opened, crew: Crew) -> Result<Self> {
        let Opened {
            device,
            superblocks,
            clock,
            extents,
            partitions,
        } = opened;
        let workers = crew.workers.clamp(1, partitions.len().max(1));
        let queues: Vec<Box<dyn TransferQueue>> = (0..workers)
            .map(|_| Arc::clone(&device).transfer_queue(crew.depth + PLACES))
            .collect();
        let bells = queues.iter().map(|queue| Bell::new(&**queue)).collect();
        let partitions = partitions.into_iter().map(SharedPartition::new).collect();
        let places = (partitions, bells);
        let shared = Arc::new(Shared::new(device, clock, places, extents, superblocks));
        let post = |(number, queue)| {
            let queue = (queue, crew.depth);
            let worker = Worker::new(Arc::clone(&shared), number, queue, crew.marks_every);
            Arc::new(Post::new(worker))
        };
        let running = Self {
            posts: queues.into_iter().enumerate().map(post).collect(),
            shared,
            threads: Mutex::default(),
            stage: Mutex::new(Stage::Open),
            is_closed: Condvar::new(),
        };
        for (number, post) in running.posts.iter().enumerate() {
            let post = Arc::clone(post);
            let work = move || {
                take_short_turns();
                post.stand();
            };
            match Builder::new().name(format!("kvell-{number}")).spawn(work) {
                Ok(thread) => running.threads.lock().push(thread),
                Err(error) => {
                    running.end_workers();
                    return Err(Error::io("start a worker", error));
                }
            }
        }
        Ok(running)
    }

    /// Closes the store. All calls have the outcome of the first, which they wait for.
    pub fn close(&self) -> Result<()> {
        let mut stage = self.stage.lock();
        loop {
            match &*stage {
                Stage::Open => break,
                Stage::Closing => self.is_closed.wait(&mut stage),
                Stage::Closed(outcome) => return outcome.clone(),
            }
        }
        *stage = Stage::Closing;
        drop(stage);
        // A panic must not leave others waiting, nor workers that go on writing.
        let outcome = catch_unwind(AssertUnwindSafe(|| self.shut()));
        let outcome = outcome.unwrap_or_else(|_| {
            self.end_workers();
            self.shared.device.unlock().and(Err(poisoned()))
        });
        *self.stage.lock() = Stage::Closed(outcome.clone());
        self.is_closed.notify_all();
        outcome
    }

    /// First no request comes in any more, then all that is under way ends and becomes durable, and only then do the
    /// workers end: their queues are empty, so nothing is written afterwards but the last superblock, here.
    fn shut(&self) -> Result<()> {
        let shared = &self.shared;
        let call = Call::new(shared.partitions.len());
        let mut answers = Answers::default();
        for (number, partition) in shared.partitions.iter().enumerate() {
            let call = Arc::clone(&call);
            partition.close(Receiver { call, number }, &mut answers);
            answers.hand_out();
            // Buffered changes have somebody who waits for them now.
            shared.wake(number);
        }
        call.wait();
        self.end_workers();
        let outcome = shared.write_last_marks();
        outcome.and(shared.device.unlock())
    }

    fn end_workers(&self) {
        self.shared.stop();
        for thread in self.threads.lock().drain(..) {
            // It catches its panics.
            let _ = thread.join();
        }
    }
}
