//! The committed log, on its way to the members.

use std::cell::Cell;
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};

use kreon_base::{Error, Lsn, Result};
use kreon_engine::{LogMirror, LogTap};
use kreon_sync::{AtomicBool, Mutex, Ordering};

use super::source::{Committed, LogSource};
use super::streams::Mirror;

thread_local! {
    /// This thread sends what it appends: the tap need not.
    static SHIPS_ITSELF: Cell<bool> = const { Cell::new(false) };
}

/// Until this is dropped.
struct ShipsItself;

impl Drop for ShipsItself {
    fn drop(&mut self) {
        SHIPS_ITSELF.set(false);
    }
}

impl LogSource for LogTap {
    fn run(
        &self,
        from: Lsn,
        max_bytes: u32,
        ship: &mut dyn FnMut(Committed<'_>) -> Result<()>,
    ) -> Result<bool> {
        let mut outcome = Ok(());
        let has_any = LogTap::run(self, from, max_bytes, |run| {
            outcome = ship(Committed {
                end: run.end,
                offset: run.offset.0,
                bytes: run.bytes,
            });
        })?;
        outcome.map(|()| has_any)
    }

    fn tail(&self) -> Result<Lsn> {
        LogTap::tail(self)
    }

    fn landed(&self) {
        LogTap::landed(self);
    }
}

impl LogMirror for Mirror {
    fn grown(&self) {
        if SHIPS_ITSELF.get() {
            self.is_owed.store(true, Ordering::Release);
            return;
        }
        if !self.has_grown.swap(true, Ordering::AcqRel) {
            self.wakeup.call();
        }
    }

    fn landed(&self) -> Lsn {
        Mirror::landed(self)
    }

    fn begin_sync(&self, upto: Lsn) {
        self.wanted.fetch_max(upto.0, Ordering::AcqRel);
        self.wakeup.call();
    }

    fn sync(&self, upto: Lsn) -> Result<Lsn> {
        self.sync_log(upto)
    }

    fn durable(&self) -> Lsn {
        Mirror::durable(self)
    }
}

impl Mirror {
    /// The store is open, and so the first checkpoint of the term is durable on all members: from now on its log is sent,
    /// beginning at `from`. Log of a term that a member's superblock does not know would look newer than that.
    ///
    /// # Errors
    /// `InvalidArgument`: it was begun before, or a member's log would have a gap; `Closed`.
    pub fn begin_log(&self, source: Arc<dyn LogSource>, from: Lsn) -> Result<()> {
        let mut state = self.state.lock();
        state.check_open()?;
        for stream in &mut state.streams {
            stream.begin_log(from)?;
        }
        if self.source.set(source).is_err() {
            return Err(Error::invalid("the log of a term begins twice"));
        }
        state.tap_from = Some(from);
        self.publish(state);
        Ok(())
    }

    /// Has this thread append to the log by `append`, and does not wake the tap for it: [`ship_appended`](Self::ship_appended)
    /// is called by the same thread soon, before it waits for anything, and before more than 64 KiB were appended so. Whoever
    /// asks for the positions of the members, as is done time and again, has the tap send what was forgotten.
    pub fn append_here<T>(&self, append: impl FnOnce() -> T) -> T {
        let _own = ShipsItself;
        SHIPS_ITSELF.set(true);
        append()
    }

    /// Sends what is committed as far as members have room for it, and does not wait. One hand-over to another thread less
    /// than by the tap.
    pub fn ship_appended(&self) {
        if !matches!(self.pump_committed(), Ok(false)) {
            // A flush is due, for which one may have to wait; or the tap meets the same error.
            self.wakeup.call();
        }
    }

    /// Sends what is committed and can be sent, without waiting: a step of the tap's thread.
    ///
    /// # Errors
    /// The log cannot be had any more.
    pub fn ship_committed(&self) -> Result<()> {
        self.pump_all()
    }
}

/// The thread that sends the log. It ends when this is dropped.
pub struct TapThread {
    mirror: Arc<Mirror>,
    stops: Arc<AtomicBool>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl TapThread {
    /// Starts it.
    ///
    /// # Errors
    /// `Io`: no thread can be started.
    pub fn start(mirror: &Arc<Mirror>) -> Result<Self> {
        let stops = Arc::new(AtomicBool::new(false));
        let (mine, stop) = (Arc::clone(mirror), Arc::clone(&stops));
        let run = move || {
            while !stop.load(Ordering::Acquire) {
                mine.wakeup.wait();
                if let Err(error) = mine.pump_all() {
                    tracing::warn!(%error, "the log can no longer be sent");
                    return mine.close("the log can no longer be sent");
                }
            }
        };
        let thread = Builder::new().name("kreon-tap".into()).spawn(run);
        let thread = thread.map_err(|error| Error::io("start the thread of a tap", error))?;
        Ok(Self {
            mirror: Arc::clone(mirror),
            stops,
            thread: Mutex::new(Some(thread)),
        })
    }
}

impl Drop for TapThread {
    fn drop(&mut self) {
        self.stops.store(true, Ordering::Release);
        self.mirror.wakeup.call();
        if let Some(thread) = self.thread.lock().take()
            && thread.join().is_err()
        {
            tracing::error!("the thread of a tap had panicked");
        }
    }
}
