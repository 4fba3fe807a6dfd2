//! The store of a new primary.

use std::sync::Arc;

use kreon_base::Result;
use kreon_device::Device;
use kreon_engine::{Engine, LogMirror, Mirroring, Options};

use crate::mirror::{Mirror, MirrorDevice, TapThread};

/// An open store whose volume and log go to the members of a mirror.
pub struct Primary {
    engine: Arc<Engine>,
    mirror: Arc<Mirror>,
    device: Arc<MirrorDevice>,
    /// Ends before the store does.
    _tap: Option<TapThread>,
}

/// Who sends the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tapping {
    /// A thread, as soon as there is something to send.
    Thread,
    /// The caller of [`Mirror::ship_committed`], besides syncs and barriers: every run of a test sends the same packets. One
    /// call may append no more than the buffers of the log hold.
    Driven,
}

impl Primary {
    /// Opens the store on `below` in the term of `mirror`, whose members are equal. When this returns, the first checkpoint of
    /// the term is durable on all of them, and the log is being sent.
    ///
    /// # Errors
    /// Those of an opening; `InvalidArgument` if the store has seen the term or a later one.
    pub fn open(
        below: Arc<dyn Device>,
        mirror: Arc<Mirror>,
        options: Options,
        tapping: Tapping,
    ) -> Result<Self> {
        mirror.ship_length(below.len_bytes())?;
        let device = Arc::new(MirrorDevice::new(Arc::clone(&below), Arc::clone(&mirror)));
        let mirroring = Mirroring {
            incarnation: Some(mirror.term().incarnation()),
            log_device: Some(below),
            log_mirror: Some(Arc::clone(&mirror) as Arc<dyn LogMirror>),
        };
        let options = Options {
            mirroring,
            ..options
        };
        let engine = Engine::open(Arc::clone(&device) as Arc<dyn Device>, options)?;
        let tap = match tapping {
            Tapping::Thread => Some(TapThread::start(&mirror)?),
            Tapping::Driven => None,
        };
        mirror.begin_log(Arc::new(engine.log_tap()), engine.log_tail())?;
        Ok(Self {
            engine: Arc::new(engine),
            mirror,
            device,
            _tap: tap,
        })
    }

    /// The store.
    pub fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    /// The streams.
    pub fn mirror(&self) -> &Arc<Mirror> {
        &self.mirror
    }

    /// The device that the store writes its pages to.
    pub fn device(&self) -> &Arc<MirrorDevice> {
        &self.device
    }

    /// Ends the store as a crash would, because it is no longer the primary's. On return nothing is under way in the file,
    /// which may become a follower's when this was dropped.
    ///
    /// # Errors
    /// `Io` if the lock of the volume could not be given up.
    pub fn abandon(&self, why: &str) -> Result<()> {
        self.mirror.close(why);
        self.engine.abandon()
    }
}
