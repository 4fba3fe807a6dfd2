//! Why a store does not do what it is asked.

use kreon_base::{Error, ErrorKind};

/// After the close.
pub fn closed() -> Error {
    Error::new(ErrorKind::Closed, "the store was closed")
}

/// After a failure of the device.
pub fn poisoned() -> Error {
    let text = "a write or flush of the volume has failed: open the store again";
    Error::new(ErrorKind::Poisoned, text)
}

/// After a panic in the midst of work on a partition: nobody knows what state it is in.
pub fn broken() -> Error {
    let text = "the work on a partition was broken off by a panic: open the store again";
    Error::new(ErrorKind::Poisoned, text)
}
