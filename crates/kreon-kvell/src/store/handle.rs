//! What all handles of a store hold, and how requests come in.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread::Builder;

use kreon_base::{Error, Result};
use kreon_device::HomeProcess;
use parking_lot::Mutex;

use super::answer::{State, outcome_of};
use super::call::{Answers, Call, Receiver};
use super::post::{drive, is_worker};
use super::refusals::closed;
use super::running::Running;
use super::shared::Shared;
use crate::partition::{Origin, Reply, Request};

/// Bytes of the number of a region in front of each key.
pub const REGION_BYTES: usize = 4;

/// A store, which is closed when nobody holds this.
pub struct Handle {
    running: Arc<Running>,
    home: HomeProcess,
    /// New regions are made one at a time.
    pub making: Mutex<()>,
    /// By number: whether a region that has, or had, handles was dropped.
    dropped: Mutex<BTreeMap<u32, Arc<AtomicBool>>>,
}

/// A request of many, and the partition that it is for.
pub struct Asked {
    pub partition: usize,
    pub request: Request,
    pub origin: Origin,
}

impl Handle {
    pub fn new(running: Running) -> Self {
        Self {
            running: Arc::new(running),
            home: HomeProcess::this(),
            making: Mutex::new(()),
            dropped: Mutex::default(),
        }
    }

    /// The store, in the process that opened it: in a forked child its locks may be held by threads that are not there.
    pub fn shared(&self) -> Result<&Shared> {
        self.home.check()?;
        Ok(&self.running.shared)
    }

    /// What tells all handles of a region that it was dropped. Takes a lock: not in a forked process.
    pub fn dropped(&self, region: u32) -> Arc<AtomicBool> {
        Arc::clone(self.dropped.lock().entry(region).or_default())
    }

    pub fn home(&self) -> HomeProcess {
        self.home
    }

    /// Closes the store, or waits until another call has.
    pub fn close(&self) -> Result<()> {
        self.home.check()?;
        check_may_wait()?;
        self.running.close()
    }

    /// Polls a future, and works as a worker meanwhile.
    pub fn drive<F: Future>(&self, future: F) -> Result<F::Output> {
        self.home.check()?;
        check_may_wait()?;
        Ok(drive(&self.running.shared, &self.running.posts, future))
    }

    /// Puts a request in and waits for its reply.
    pub fn ask_and_wait(&self, request: Request) -> Result<Option<Vec<u8>>> {
        check_may_wait()?;
        self.ask(request)?.wait()
    }

    /// Puts a request in.
    pub fn ask(&self, request: Request) -> Result<State> {
        let shared = self.shared()?;
        let number = shared.partition_of(request.key_hash);
        let partition = shared.partitions.get(number).ok_or_else(closed)?;
        let mut answers = Answers::default();
        let mut call = None;
        let receiver = || Receiver {
            call: Arc::clone(call.insert(Call::new(1))),
            number: 0,
        };
        let (reply, needs) = partition.ask(request, receiver, &mut answers)?;
        answers.hand_out();
        shared.left(number, needs);
        Ok(match (reply, call) {
            (None, Some(call)) => State::Waiting(call),
            (reply, _) => State::Answered(outcome_of(reply)),
        })
    }

    /// Puts many requests in, and waits until all are answered. The outcomes, in their order.
    pub fn ask_many(&self, requests: Vec<Request>) -> Result<Vec<Result<Option<Vec<u8>>>>> {
        let shared = self.shared()?;
        let asked = requests.into_iter().map(|request| Asked {
            partition: shared.partition_of(request.key_hash),
            request,
            origin: Origin::Caller,
        });
        let call = self.begin_many(asked.collect())?;
        Ok(call.wait().into_iter().map(outcome_of).collect())
    }

    /// Puts many requests in. The call has their replies, in their order; its caller is to wait for them.
    pub fn begin_many(&self, requests: Vec<Asked>) -> Result<Arc<Call>> {
        check_may_wait()?;
        let shared = self.shared()?;
        let call = Call::new(requests.len());
        let mut groups: Vec<Vec<(usize, Request, Origin)>> = Vec::new();
        groups.resize_with(shared.partitions.len(), Vec::new);
        for (number, asked) in requests.into_iter().enumerate() {
            if let Some(group) = groups.get_mut(asked.partition) {
                group.push((number, asked.request, asked.origin));
            }
        }
        let mut answers = Answers::default();
        let mut busy = Vec::new();
        let groups = groups.into_iter().zip(&shared.partitions).enumerate();
        for (partition, (group, shared_partition)) in groups {
            if group.is_empty() {
                continue;
            }
            let numbers: Vec<usize> = group.iter().map(|it| it.0).collect();
            match shared_partition.ask_many(group.into_iter(), &call, &mut answers) {
                Ok(needs) => busy.push((partition, needs)),
                Err(error) => numbers.into_iter().for_each(|number| {
                    let call = Arc::clone(&call);
                    answers.push(Receiver { call, number }, Reply::Failed(error.clone()));
                }),
            }
            answers.hand_out();
        }
        // Each worker is woken when all is there, and once.
        for (partition, needs) in busy {
            shared.left(partition, needs);
        }
        Ok(call)
    }
}

/// Refuses to wait on a worker, as in what the wake-up of a future runs and in a future that is driven: the worker would
/// wait for itself.
pub fn check_may_wait() -> Result<()> {
    if is_worker() {
        let text = "a wake-up on a worker of a store, and a future that a store drives, cannot wait for the store: let \
                    another thread do it";
        return Err(Error::invalid(text));
    }
    Ok(())
}

impl Drop for Handle {
    fn drop(&mut self) {
        if !self.home.is_this() {
            // Its threads do not exist in this process, and its locks may be held for ever.
            std::mem::forget(Arc::clone(&self.running));
            return;
        }
        let running = Arc::clone(&self.running);
        let close = move || {
            if let Err(error) = running.close() {
                tracing::warn!(%error, "closing the store failed");
            }
        };
        if !is_worker() {
            return close();
        }
        // What a worker woke has dropped the last handle: the worker cannot wait for its own end.
        if let Err(error) = Builder::new().name("kvell-close".to_owned()).spawn(close) {
            tracing::error!(%error, "the store stays open: no thread to close it");
        }
    }
}
