//! Where the file of a group is, and what a replica keeps beside it.

use std::fs::File;
use std::io::{ErrorKind as Io, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kreon_base::{Checksum, Error, Result};
use kreon_device::{Device, FileOptions};
use kreon_sync::{AtomicU64, Ordering};
use kreon_wire::limits::BLOCK_BYTES;

use crate::files::{Folder, GroupFile, GroupFiles};
use crate::machine::{Stamp, Term, Version};
use crate::resync::blank_slots;

/// The place of one group's replica.
pub trait Volume: Send + Sync {
    /// Opens the file that counts, locked; makes one if there is none. What was opened before was dropped or unlocked.
    ///
    /// # Errors
    /// Those of the device.
    fn open(&self) -> Result<Arc<dyn Device>>;

    /// Prepares a file for a copy of a volume that takes `needed_bytes` on the device: without superblocks, durably. What was
    /// opened before was dropped or unlocked. With `is_trusted` blocks that are equal to those of the copy need not be written;
    /// without it, because the device failed, nothing is to be left of them.
    ///
    /// Without a second file the one that counts is overwritten, and this server has no copy of the group meanwhile: so it is
    /// where nothing else is said.
    ///
    /// # Errors
    /// Those of the device. If there is a second file, the one that counts is untouched.
    fn begin_resync(&self, needed_bytes: u64, is_trusted: bool) -> Result<Arc<dyn Device>> {
        let _ = (needed_bytes, is_trusted);
        tracing::warn!("the replica here is overwritten by a copy of the primary's");
        let device = self.open()?;
        empty(&*device)?;
        Ok(device)
    }

    /// The server has seen itself in the set with this file, which [`begin_resync`](Self::begin_resync) prepared: other ones go.
    ///
    /// # Errors
    /// Those of the device; nothing is lost, and it may be tried again.
    fn settle(&self, device: &Arc<dyn Device>) -> Result<()> {
        let _ = device;
        Ok(())
    }

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

/// Files of one group in a folder, `PATH.1` and so on, as [`GroupFiles`] keeps them, and another one with `.seen` behind
/// `PATH`. There is one file, and during a resync a second one.
#[derive(Clone, Debug)]
pub struct FileVolume {
    path: PathBuf,
    /// Of the file that was opened last.
    generation: Arc<AtomicU64>,
}

const STAMP_BYTES: usize = 20;

impl FileVolume {
    /// Files that are called `path` with a number behind. Its folder exists.
    pub fn new(path: impl AsRef<Path>) -> Self {
        Self {
            path: path.as_ref().to_owned(),
            generation: Arc::default(),
        }
    }

    /// What all files are called, but for what stands behind.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The file that was opened last; none before.
    pub fn file(&self) -> Option<PathBuf> {
        match self.generation.load(Ordering::Acquire) {
            0 => None,
            generation => Some(self.beside(&format!(".{generation}"))),
        }
    }

    /// The files.
    ///
    /// # Errors
    /// `InvalidArgument`: the path names none.
    pub fn files(&self) -> Result<GroupFiles> {
        let name = self.path.file_name().and_then(|name| name.to_str());
        let name = name.ok_or_else(|| Error::invalid("a path that names no file"))?;
        let folder = match self.path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        let folder = Folder::new(folder, FileOptions::default());
        GroupFiles::new(Arc::new(folder), name)
    }

    fn beside(&self, ending: &str) -> PathBuf {
        let mut name = self.path.clone().into_os_string();
        name.push(ending);
        name.into()
    }

    fn opened(&self, file: GroupFile) -> Arc<dyn Device> {
        self.generation.store(file.generation, Ordering::Release);
        file.device
    }
}

impl Volume for FileVolume {
    fn open(&self) -> Result<Arc<dyn Device>> {
        Ok(self.opened(self.files()?.open()?))
    }

    fn begin_resync(&self, needed_bytes: u64, is_trusted: bool) -> Result<Arc<dyn Device>> {
        let files = self.files()?;
        let old = files.choose()?;
        let has_old = old.is_some();
        let begun = files.begin(old, needed_bytes)?;
        // In the place of the old file there is space only for what the copy needs.
        let is_in_its_place = has_old && !begun.is_beside;
        if !is_trusted || is_in_its_place {
            empty(&*begun.file.device)?;
        }
        Ok(self.opened(begun.file))
    }

    fn settle(&self, device: &Arc<dyn Device>) -> Result<()> {
        let keep = GroupFile {
            generation: self.generation.load(Ordering::Acquire),
            device: Arc::clone(device),
            slot: None,
        };
        self.files()?.settle(&keep)
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

/// Makes a file empty but for its length, durably without superblocks first.
fn empty(device: &dyn Device) -> Result<()> {
    blank_slots(device)?;
    let len_bytes = device.len_bytes() - device.len_bytes() % BLOCK_BYTES;
    device.discard(0, len_bytes)?;
    blank_slots(device)
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
