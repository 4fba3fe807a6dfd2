//! Where the file of a group is, and what a replica keeps beside it.

use std::fs::File;
use std::io::{ErrorKind as Io, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kreon_base::{Checksum, Error, Result};
use kreon_device::{Device, FileDevice, FileOptions};

use crate::machine::{Stamp, Term, Version};

/// The place of one group's replica.
pub trait Volume: Send + Sync {
    /// Opens the file, locked; makes it if there is none. What was opened before was dropped or unlocked.
    ///
    /// # Errors
    /// Those of the device.
    fn open(&self) -> Result<Arc<dyn Device>>;

    /// The latest configuration that was seen here; none if there never was one.
    ///
    /// # Errors
    /// `Corruption`: it does not verify; `Io`.
    fn seen(&self) -> Result<Option<Stamp>>;

    /// Keeps the latest configuration that was seen, durably when this returns.
    ///
    /// # Errors
    /// `Io`.
    fn keep_seen(&self, stamp: Stamp) -> Result<()>;
}

/// A file, and another one with `.seen` behind its name.
#[derive(Clone, Debug)]
pub struct FileVolume {
    path: PathBuf,
    options: FileOptions,
}

const STAMP_BYTES: usize = 20;

impl FileVolume {
    /// The file at `path`, whose folder exists.
    pub fn new(path: impl AsRef<Path>) -> Self {
        let options = FileOptions {
            create: true,
            ..FileOptions::default()
        };
        Self {
            path: path.as_ref().to_owned(),
            options,
        }
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn beside(&self, ending: &str) -> PathBuf {
        let mut name = self.path.clone().into_os_string();
        name.push(ending);
        name.into()
    }
}

impl Volume for FileVolume {
    fn open(&self) -> Result<Arc<dyn Device>> {
        let (device, _) = FileDevice::open(&self.path, &self.options)?;
        Ok(Arc::new(device))
    }

    fn seen(&self) -> Result<Option<Stamp>> {
        let path = self.beside(".seen");
        let mut file = match File::open(&path) {
            Err(error) if error.kind() == Io::NotFound => return Ok(None),
            opened => opened.map_err(|error| failed(&path, error))?,
        };
        let mut bytes = [0; STAMP_BYTES];
        file.read_exact(&mut bytes)
            .map_err(|error| failed(&path, error))?;
        decode(&bytes).map(Some)
    }

    fn keep_seen(&self, stamp: Stamp) -> Result<()> {
        let (path, next) = (self.beside(".seen"), self.beside(".seen.next"));
        let kept = || {
            let mut file = File::create(&next)?;
            file.write_all(&encode(stamp))?;
            file.sync_all()?;
            std::fs::rename(&next, &path)?;
            match path.parent().filter(|folder| folder.is_dir()) {
                Some(folder) => File::open(folder)?.sync_all(),
                None => Ok(()),
            }
        };
        kept().map_err(|error| failed(&path, error))
    }
}

fn failed(path: &Path, error: std::io::Error) -> Error {
    Error::io(format!("keep {}", path.display()), error)
}

fn encode(stamp: Stamp) -> [u8; STAMP_BYTES] {
    let mut bytes = [0; STAMP_BYTES];
    bytes[..8].copy_from_slice(&stamp.term.0.to_le_bytes());
    bytes[8..16].copy_from_slice(&stamp.version.0.to_le_bytes());
    let checksum = Checksum::of(&bytes[..16]);
    bytes[16..].copy_from_slice(&checksum.to_le_bytes());
    bytes
}

fn decode(bytes: &[u8; STAMP_BYTES]) -> Result<Stamp> {
    let number = |at: usize| {
        let mut part = [0; 8];
        part.copy_from_slice(&bytes[at..at + 8]);
        u64::from_le_bytes(part)
    };
    let stamp = Stamp {
        term: Term(number(0)),
        version: Version(number(8)),
    };
    match encode(stamp) == *bytes {
        true => Ok(stamp),
        false => Err(Error::corruption(
            "the latest configuration that was seen does not verify",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_seen_is_read_again_and_damage_is_noticed() {
        let stamp = Stamp {
            term: Term(7),
            version: Version(9),
        };
        let mut bytes = encode(stamp);
        assert_eq!(decode(&bytes).unwrap(), stamp);
        bytes[3] ^= 1;
        assert!(decode(&bytes).is_err());
    }
}
