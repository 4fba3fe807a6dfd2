//! What waits for the file of a group: one thing after the other.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Weak};
use std::thread::{Builder, JoinHandle};

use kreon_base::{Error, Result};
use kreon_device::Device;
use kreon_sync::Mutex;

use super::group::Group;

/// The file of a group, as long as no engine has taken it over for good.
#[derive(Default)]
pub(super) struct Files(Option<Arc<dyn Device>>);

impl Files {
    /// The file, opened if it is not.
    pub fn device(&mut self, group: &Group) -> Result<Arc<dyn Device>> {
        if let Some(device) = &self.0 {
            return Ok(Arc::clone(device));
        }
        let device = group.volume.open()?;
        self.0 = Some(Arc::clone(&device));
        Ok(device)
    }

    /// What an engine was opened on was unlocked with it.
    pub fn drop_device(&mut self) {
        self.0 = None;
    }

    /// Whoever has the file still does nothing more with it: it may be opened again, or another one.
    pub fn close(&mut self) {
        if let Some(device) = self.0.take()
            && let Err(error) = device.unlock()
        {
            tracing::error!(%error, "the lock of a file cannot be given up");
        }
    }

    /// Takes a file for a copy of a volume that needs so much space.
    pub fn begin_resync(&mut self, group: &Group, needed_bytes: u64) -> Result<()> {
        self.close();
        let is_trusted = !group.core().has_failed;
        self.0 = Some(group.volume.begin_resync(needed_bytes, is_trusted)?);
        Ok(())
    }

    /// The server is in the set with this file.
    pub fn settle(&self, group: &Group) -> Result<()> {
        match &self.0 {
            Some(device) => group.volume.settle(device),
            None => Ok(()),
        }
    }
}

/// One thing to do.
pub(super) type Job = Box<dyn FnOnce(&Arc<Group>, &mut Files) + Send>;

/// The thread of a group that does them. It ends when this is dropped.
pub(super) struct Worker {
    jobs: Mutex<Option<Sender<Job>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Worker {
    /// Starts it.
    ///
    /// # Errors
    /// `Io`: no thread can be started.
    pub fn start(group: Weak<Group>) -> Result<Self> {
        let (sender, receiver) = channel();
        let thread = Builder::new().name("kreon-group".into());
        let thread = thread.spawn(move || run(&group, &receiver));
        let thread = thread.map_err(|error| Error::io("start the thread of a group", error))?;
        Ok(Self {
            jobs: Mutex::new(Some(sender)),
            thread: Mutex::new(Some(thread)),
        })
    }

    /// Does it after all that was put before.
    pub fn put(&self, job: Job) {
        if let Some(jobs) = &*self.jobs.lock() {
            // It fails when the thread has ended, with the group.
            let _ = jobs.send(job);
        }
    }

    /// Does all that was put before, and nothing later.
    pub fn end(&self) {
        drop(self.jobs.lock().take());
        let thread = self.thread.lock().take();
        let own = std::thread::current().id();
        if let Some(thread) = thread.filter(|thread| thread.thread().id() != own)
            && thread.join().is_err()
        {
            tracing::error!("the thread of a group had panicked");
        }
    }
}

fn run(group: &Weak<Group>, jobs: &Receiver<Job>) {
    let mut files = Files::default();
    while let Ok(job) = jobs.recv() {
        let Some(group) = group.upgrade() else {
            return;
        };
        job(&group, &mut files);
    }
}
