//! Space that a backup keeps, so that a primary need not wait for allocations.

use kreon_base::{Error, ErrorKind, Result, SEGMENT_BYTES};
use kreon_device::Device;
use kreon_sync::Mutex;
use std::sync::Arc;

/// A file beside the volume, on the same file system, that holds nothing but space.
pub struct Ballast {
    device: Arc<dyn Device>,
    left_bytes: Mutex<u64>,
}

impl Ballast {
    /// Takes so many bytes, rounded up to segments.
    ///
    /// # Errors
    /// Those of the device; `OutOfSpace` if it has no such space.
    pub fn new(device: Arc<dyn Device>, len_bytes: u64) -> Result<Self> {
        let len_bytes = len_bytes.next_multiple_of(SEGMENT_BYTES);
        device.grow(len_bytes)?;
        device.allocate(0, len_bytes)?;
        Ok(Self {
            device,
            left_bytes: Mutex::new(len_bytes),
        })
    }

    /// How much is left.
    pub fn left_bytes(&self) -> u64 {
        *self.left_bytes.lock()
    }

    /// Gives at least so many bytes back to the file system.
    ///
    /// # Errors
    /// `OutOfSpace` if less is left; `Io`.
    pub fn give(&self, len_bytes: u64) -> Result<()> {
        let len_bytes = len_bytes.next_multiple_of(SEGMENT_BYTES);
        let mut left = self.left_bytes.lock();
        let Some(rest) = left.checked_sub(len_bytes) else {
            let text = format!("a backup keeps {left} bytes, {len_bytes} are needed");
            return Err(Error::new(ErrorKind::OutOfSpace, text));
        };
        self.device.discard(rest, len_bytes)?;
        *left = rest;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use kreon_sim::{SimDevice, SimOptions};

    use super::*;

    #[test]
    fn ballast_gives_back_what_it_took_and_no_more() {
        let device = Arc::new(SimDevice::new(SimOptions::default()));
        let ballast = Ballast::new(device.clone(), 3 * SEGMENT_BYTES - 1).unwrap();
        assert_eq!(device.space_bytes(), 3 * SEGMENT_BYTES);
        ballast.give(SEGMENT_BYTES + 1).unwrap();
        assert_eq!(device.space_bytes(), SEGMENT_BYTES);
        let error = ballast.give(SEGMENT_BYTES + 1).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::OutOfSpace);
        assert_eq!(ballast.left_bytes(), SEGMENT_BYTES);
    }
}
