//! A moment of a group: a snapshot at its primary, bound to the link and the term in which it was taken.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use kreon_fabric::LinkName;
use kreon_wire::{
    Address as Place, FailureKind, KeyRange as Held, Kind as PacketKind, Reply, Request, SnapshotId,
};

use crate::call::Kind;
use crate::error::{Error, ErrorKind, Result};
use crate::handle::Handle;
use crate::slot::{Answer, Slot};

/// A snapshot at a primary. Its number means nothing on another link or in another term, so it ends with either. Released
/// when it is dropped.
pub(crate) struct Pin {
    handle: Handle,
    link: LinkName,
    place: Place,
    /// 0 when there is nothing to release any more.
    snapshot: AtomicU64,
}

impl Pin {
    /// The snapshot of this number, of which `answer` told.
    pub(crate) fn new(handle: &Handle, answer: &Answer, snapshot: SnapshotId) -> Result<Arc<Self>> {
        Ok(Arc::new(Self {
            handle: handle.clone(),
            link: answer.link,
            place: answer.frame()?.address(),
            snapshot: AtomicU64::new(snapshot.0),
        }))
    }

    pub(crate) fn snapshot(&self) -> SnapshotId {
        SnapshotId(self.snapshot.load(Ordering::Relaxed))
    }

    /// The server has released it.
    pub(crate) fn forget(&self) {
        self.snapshot.store(0, Ordering::Relaxed);
    }

    /// Begins a read in it.
    pub(crate) fn begin(&self, body: Vec<u8>) -> Result<Arc<Slot>> {
        let driver = self.handle.driver();
        let request = PacketKind::Request;
        driver.begin_on(self.link, request, self.place, body, driver.patience())
    }

    /// The answer to a read that was begun in it. A server that is busy is asked again, until the time is over.
    pub(crate) fn wait(&self, slot: &Slot, body: &[u8]) -> Result<Answer> {
        let driver = self.handle.driver();
        let until = Instant::now() + driver.limit();
        let mut answer = slot.wait();
        loop {
            let refused = match &answer {
                Ok(answer) => match Reply::decode(&answer.frame()?).map_err(Error::corrupt)? {
                    Reply::Failed(failure) => match failure.kind {
                        FailureKind::Moved | FailureKind::Closed => {
                            return Err(ended(failure.text));
                        }
                        FailureKind::Busy | FailureKind::Unavailable => Error::from(&failure),
                        _ => return Err(Error::from(&failure)),
                    },
                    _ => break,
                },
                Err(error) if error.kind() == ErrorKind::Closed => return Err(ended("")),
                Err(error) if self.is_over() => return Err(ended(error.text())),
                Err(error) => error.clone(),
            };
            if Instant::now() >= until {
                return Err(refused);
            }
            std::thread::sleep(driver.rest());
            answer = self.begin(body.to_vec()).and_then(|slot| slot.wait());
        }
        answer
    }

    /// Whether its primary is known to be one no more: it may be frozen, and nobody else can answer.
    fn is_over(&self) -> bool {
        let state = self.handle.driver().state();
        state.is_over_in(self.place.group, self.place.term)
    }

    /// A read in it, and its answer.
    pub(crate) fn ask(&self, body: &[u8]) -> Result<Answer> {
        let slot = self.begin(body.to_vec())?;
        self.wait(&slot, body)
    }
}

/// Begins to take a snapshot of the group that holds a range.
pub(crate) fn begin(handle: &Handle, range: &Held) -> Result<Arc<Slot>> {
    let place = (range.table.as_str(), range.start.as_slice());
    handle
        .driver()
        .begin(Kind::Read, place, Request::Snapshot.body())
}

/// The snapshot of which an answer tells.
pub(crate) fn pin_of(handle: &Handle, answer: &Answer) -> Result<Arc<Pin>> {
    match answer.reply()? {
        Reply::Snapshot(snapshot) => Pin::new(handle, answer, snapshot),
        _ => Err(Error::strange()),
    }
}

/// A snapshot of the group that holds a range.
pub(crate) fn take_pin(handle: &Handle, range: &Held) -> Result<Arc<Pin>> {
    pin_of(handle, &begin(handle, range)?.wait()?)
}

fn ended(text: &str) -> Error {
    let told = match text.is_empty() {
        true => String::new(),
        false => format!(": {text}"),
    };
    let text = format!("the snapshot ended with the term of its primary or the link to it{told}");
    Error::new(ErrorKind::Closed, text)
}

impl Drop for Pin {
    fn drop(&mut self) {
        let snapshot = self.snapshot();
        if snapshot.0 != 0 {
            // Nobody waits for the answer; without a link there is nothing to release.
            drop(self.begin(Request::Release { snapshot }.body()));
        }
    }
}
