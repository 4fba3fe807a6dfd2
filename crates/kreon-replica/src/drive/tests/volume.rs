//! A volume that keeps what a test may look at between two starts of its server.

use std::sync::Arc;

use kreon_base::{Error, ErrorKind, Result};
use kreon_device::Device;
use kreon_sim::SimDevice;
use kreon_sync::{AtomicBool, Mutex, Ordering};

use super::super::Volume;
use crate::machine::Stamp;

/// One simulated device, and what was seen.
#[derive(Clone)]
pub struct SimVolume {
    pub device: Arc<SimDevice>,
    seen: Arc<Mutex<Option<Stamp>>>,
    /// What is seen cannot be kept.
    pub keeps_nothing: Arc<AtomicBool>,
}

impl SimVolume {
    pub fn new() -> Self {
        let options = kreon_sim::SimOptions {
            record: false,
            ..kreon_sim::SimOptions::default()
        };
        Self {
            device: Arc::new(SimDevice::new(options)),
            seen: Arc::default(),
            keeps_nothing: Arc::default(),
        }
    }
}

impl Volume for SimVolume {
    fn open(&self) -> Result<Arc<dyn Device>> {
        Ok(Arc::clone(&self.device) as Arc<dyn Device>)
    }

    fn seen(&self) -> Result<Option<Stamp>> {
        Ok(*self.seen.lock())
    }

    fn keep_seen(&self, stamp: Stamp) -> Result<()> {
        if self.keeps_nothing.load(Ordering::Acquire) {
            return Err(Error::new(ErrorKind::OutOfSpace, "nothing can be kept"));
        }
        *self.seen.lock() = Some(stamp);
        Ok(())
    }
}
