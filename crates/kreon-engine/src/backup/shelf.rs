//! Where backups are kept: files with names.

use std::sync::Arc;

use kreon_base::Result;
use kreon_device::{AlignedBuf, Device};

/// How a file of a shelf is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// It is made, empty, or there and written on.
    Write,
    /// It is there.
    Read,
}

/// A folder, or what stands for one. Blocks of its devices are no larger than a page.
pub trait Shelf: Send + Sync {
    /// Names of all files.
    ///
    /// # Errors
    /// `NotFound` without a folder; `Io`.
    fn names(&self) -> Result<Vec<String>>;

    /// Opens a file; for writing nobody else may have it open.
    ///
    /// # Errors
    /// `NotFound`, `Busy`, `OutOfSpace`, `Io`.
    fn open(&self, name: &str, access: Access) -> Result<Arc<dyn Device>>;

    /// Gives a file another name, durably.
    ///
    /// # Errors
    /// `Io`.
    fn rename(&self, from: &str, to: &str) -> Result<()>;

    /// Removes a file, durably.
    ///
    /// # Errors
    /// `Io`.
    fn remove(&self, name: &str) -> Result<()>;
}

/// Held by the one that writes to the shelf.
pub const LOCK: &str = "lock";

/// A manifest that is being written.
pub const UNFINISHED: &str = "manifest.unfinished";

/// What a file of the shelf is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Name {
    Manifest(u32),
    Data(u32),
}

impl Name {
    /// None: no file of ours.
    pub fn parse(name: &str) -> Option<Self> {
        let number = |digits: &str| digits.parse().ok().filter(|number| *number > 0);
        let (kind, digits) = name.split_once('-')?;
        let found = match kind {
            "manifest" => Self::Manifest(number(digits)?),
            "data" => Self::Data(number(digits)?),
            _ => return None,
        };
        (found.text() == name).then_some(found)
    }

    pub fn text(self) -> String {
        match self {
            Self::Manifest(number) => format!("manifest-{number:06}"),
            Self::Data(number) => format!("data-{number:06}"),
        }
    }
}

/// All bytes of a small file.
pub fn read_whole(device: &dyn Device) -> Result<AlignedBuf> {
    let mut bytes = AlignedBuf::new(device.len_bytes() as usize);
    device.read_at(0, &mut bytes)?;
    Ok(bytes)
}
