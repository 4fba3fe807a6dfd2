//! Which file of a group counts, which one a resync writes, and which ones go.

use std::sync::Arc;

use kreon_base::{Error, PAGE_BYTES, Result};
use kreon_device::{AlignedBuf, Device};
use kreon_format::SUPERBLOCK_PAGES;
use kreon_volume::superblock::{self, Found};
use kreon_wire::Slot;

use super::folder::Directory;
use crate::blank::blank_slots;

/// What a file is called before it has no superblock, durably.
const UNNAMED: &str = ".new";

/// The files of one group in a folder. See the module's text.
#[derive(Clone)]
pub struct GroupFiles {
    directory: Arc<dyn Directory>,
    base: String,
}

/// One of them, open and locked.
#[derive(Clone)]
pub struct GroupFile {
    /// Later files have higher ones.
    pub generation: u64,
    /// The file.
    pub device: Arc<dyn Device>,
    /// Its newest superblock when it was looked at; `None`: it is no store, as a resync into it was not completed.
    pub slot: Option<Slot>,
}

/// What a resync writes.
#[derive(Clone)]
pub struct Begun {
    /// A file without superblocks, durably.
    pub file: GroupFile,
    /// The file that counted before is still there, untouched.
    pub is_beside: bool,
}

impl GroupFiles {
    /// Files `BASE.1` and so on in `directory`.
    ///
    /// # Errors
    /// `InvalidArgument`: the base is empty, hidden or a path.
    pub fn new(directory: Arc<dyn Directory>, base: impl Into<String>) -> Result<Self> {
        let base = base.into();
        match base.is_empty() || base.starts_with('.') || base.contains('/') {
            true => Err(Error::invalid(format!("{base:?} is no name of files"))),
            false => Ok(Self { directory, base }),
        }
    }

    /// The name of a file of the group.
    pub fn name_of(&self, generation: u64) -> String {
        format!("{}.{generation}", self.base)
    }

    /// The file that counts after a restart: that with the higher (incarnation, epoch), of equal ones the later; `None`: no
    /// file is a store. Changes nothing.
    ///
    /// # Errors
    /// `InvalidArgument`: a file of that name is not one of a store, or of a newer format; it was left untouched. `Busy`: a
    /// file is open; `Io`.
    pub fn choose(&self) -> Result<Option<GroupFile>> {
        let files = self.files()?;
        let stores = files.into_iter().filter(|file| file.slot.is_some());
        Ok(stores.max_by_key(|file| (file.slot, file.generation)))
    }

    /// The file that counts or, if none is a store, the last one there is; an empty one if there is none.
    ///
    /// # Errors
    /// Those of [`choose`](Self::choose).
    pub fn open(&self) -> Result<GroupFile> {
        let files = self.files()?;
        if let Some(last) = files
            .into_iter()
            .max_by_key(|file| (file.slot, file.generation))
        {
            return Ok(last);
        }
        self.directory.create(&self.name_of(1))?;
        self.directory.sync()?;
        self.look_at(1)
    }

    /// Prepares a file for a resync of a volume that takes `needed_bytes`. `old` is the file that counts, which nobody uses:
    /// it stays beside the new one if there is space for both; otherwise it is the one to be written, and no store from now on.
    ///
    /// What an earlier resync left, or what the blocks of the old file are, needs not be written again where it is equal.
    ///
    /// # Errors
    /// Those of [`choose`](Self::choose) and of the devices. Until this returns `old` counts as before, unless there is no space
    /// for two.
    pub fn begin(&self, old: Option<GroupFile>, needed_bytes: u64) -> Result<Begun> {
        let left = self.clear(old.as_ref())?;
        let old = match old {
            Some(old) => old,
            None => {
                let file = match left {
                    Some(left) => blanked(left)?,
                    None => self.make(None)?,
                };
                let is_beside = false;
                return Ok(Begun { file, is_beside });
            }
        };
        let taken_bytes = match &left {
            Some(left) => self.directory.taken_bytes(&self.name_of(left.generation))?,
            None => 0,
        };
        let free_bytes = self.directory.free_bytes();
        let has_space =
            free_bytes.is_none_or(|free| free.saturating_add(taken_bytes) >= needed_bytes);
        if has_space {
            let file = match left {
                Some(left) => blanked(left)?,
                None => self.make(Some(&old))?,
            };
            let is_beside = true;
            return Ok(Begun { file, is_beside });
        }
        if let Some(left) = left {
            self.remove([left.generation].into_iter())?;
        }
        tracing::warn!(
            file = self.name_of(old.generation),
            needed_bytes,
            free_bytes,
            "no space for a second file: the resync destroys this server's copy of the group before it has another one"
        );
        let file = blanked(old)?;
        let is_beside = false;
        Ok(Begun { file, is_beside })
    }

    /// The server has seen itself in the set with this file: all others of the group go.
    ///
    /// # Errors
    /// `InvalidArgument`: the file is no store, or one of the others is not a file of a store; nothing was removed then. Those
    /// of the device; `Busy`; `Io`.
    pub fn settle(&self, keep: &GroupFile) -> Result<()> {
        if slot_of(&*keep.device)?.is_none() {
            let name = self.name_of(keep.generation);
            return Err(Error::invalid(format!("{name} is no store yet")));
        }
        keep.device.flush()?;
        let others = self.others(Some(keep.generation))?;
        let others: Vec<u64> = others.iter().map(|other| other.generation).collect();
        self.remove(others.into_iter())
    }

    /// Removes all files but `old` and, of those that are no store, the last, which it returns.
    fn clear(&self, old: Option<&GroupFile>) -> Result<Option<GroupFile>> {
        let mut others = self.others(old.map(|old| old.generation))?;
        others.sort_by_key(|file| (file.slot.is_none(), file.generation));
        if let (None, Some(store)) = (old, others.iter().find(|file| file.slot.is_some())) {
            let name = self.name_of(store.generation);
            return Err(Error::invalid(format!(
                "{name} is a store, and may be the last copy"
            )));
        }
        let left = others.pop_if(|last| last.slot.is_none());
        let gone: Vec<u64> = others.iter().map(|other| other.generation).collect();
        drop(others);
        self.remove(gone.into_iter())?;
        Ok(left)
    }

    /// Removes files, and those that never got their names.
    fn remove(&self, generations: impl Iterator<Item = u64>) -> Result<()> {
        let unnamed = self.directory.names()?.into_iter().filter(|name| {
            let named = name.strip_suffix(UNNAMED);
            named.is_some_and(|named| self.generation_of(named).is_some())
        });
        let gone: Vec<String> = unnamed
            .chain(generations.map(|generation| self.name_of(generation)))
            .collect();
        for name in &gone {
            self.directory.remove(name)?;
        }
        match gone.is_empty() {
            true => Ok(()),
            false => self.directory.sync(),
        }
    }

    /// Makes the next file, with the blocks of `old` where they can be shared.
    fn make(&self, old: Option<&GroupFile>) -> Result<GroupFile> {
        let last = self.generations()?.into_iter().max();
        let generation = last.unwrap_or(0) + 1;
        let name = self.name_of(generation);
        let unnamed = format!("{name}{UNNAMED}");
        self.directory.create(&unnamed)?;
        if let Some(old) = old {
            let from = self.name_of(old.generation);
            let is_shared = self.directory.clone_blocks(&from, &unnamed)?;
            tracing::debug!(name, is_shared, "a second file for a resync");
        }
        // A clone is a store until it has no superblock: it must not have its name before.
        blank_slots(&*self.directory.open(&unnamed)?)?;
        self.directory.rename(&unnamed, &name)?;
        self.directory.sync()?;
        Ok(GroupFile {
            generation,
            device: self.directory.open(&name)?,
            slot: None,
        })
    }

    fn files(&self) -> Result<Vec<GroupFile>> {
        self.others(None)
    }

    /// All files but that of one generation.
    fn others(&self, but: Option<u64>) -> Result<Vec<GroupFile>> {
        let mut files = Vec::new();
        for generation in self.generations()? {
            if Some(generation) != but {
                files.push(self.look_at(generation)?);
            }
        }
        Ok(files)
    }

    fn look_at(&self, generation: u64) -> Result<GroupFile> {
        let name = self.name_of(generation);
        let device = self.directory.open(&name)?;
        let slot = slot_of(&*device)?;
        if slot.is_none() && !is_ours(&*device)? {
            return Err(Error::invalid(format!(
                "{name} is not a file of a store: it is not empty, and was left untouched"
            )));
        }
        Ok(GroupFile {
            generation,
            device,
            slot,
        })
    }

    fn generations(&self) -> Result<Vec<u64>> {
        let names = self.directory.names()?;
        let mut generations: Vec<u64> = names
            .iter()
            .filter_map(|name| self.generation_of(name))
            .collect();
        generations.sort_unstable();
        Ok(generations)
    }

    fn generation_of(&self, name: &str) -> Option<u64> {
        let digits = name.strip_prefix(&self.base)?.strip_prefix('.')?;
        let generation = digits.parse().ok()?;
        // As it is written, without signs and zeroes in front.
        (self.name_of(generation) == name).then_some(generation)
    }
}

fn blanked(file: GroupFile) -> Result<GroupFile> {
    blank_slots(&*file.device)?;
    let slot = None;
    Ok(GroupFile { slot, ..file })
}

/// The newest superblock; `None`: there is none.
fn slot_of(device: &dyn Device) -> Result<Option<Slot>> {
    Ok(match superblock::read(device)? {
        Found::Store(superblock, _) => Some(Slot {
            incarnation: superblock.incarnation,
            epoch: superblock.epoch,
        }),
        Found::Nothing | Found::Other(_) => None,
    })
}

/// Whether a file without a whole superblock is one that a resync was to fill: its slots are blank, or bear the marks of one
/// that was cut off by a power failure.
fn is_ours(device: &dyn Device) -> Result<bool> {
    match superblock::read(device)? {
        Found::Nothing | Found::Store(..) | Found::Other(Some(_)) => Ok(true),
        Found::Other(None) => {
            let mut page = AlignedBuf::new(PAGE_BYTES);
            for slot in SUPERBLOCK_PAGES {
                let offset = slot.offset_bytes();
                if offset + PAGE_BYTES as u64 > device.len_bytes() {
                    return Ok(false);
                }
                device.read_at(offset, &mut page)?;
                if page.iter().any(|byte| *byte != 0) {
                    return Ok(false);
                }
            }
            Ok(true)
        }
    }
}
