//! The backups of a shelf, and which parts of its data files they need.

use std::collections::BTreeMap;

use kreon_base::{Error, ErrorKind, Lsn, PAGE_BYTES, Result};
use kreon_device::{AlignedBuf, Device};
use kreon_format::{BackupManifest, BackupPlace};

use super::shelf::{Access, Name, Shelf, UNFINISHED, read_whole};

/// A backup that can be restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BackupInfo {
    /// Its number on the shelf.
    pub number: u32,
    /// Milliseconds since 1970 when it began.
    pub time_ms: u64,
    /// Bytes that it has, shared ones included.
    pub bytes: u64,
    /// Length of the volume that a restore makes.
    pub volume_bytes: u64,
    /// Every write before is in it.
    pub log_end: Lsn,
}

impl BackupInfo {
    pub(super) fn of(manifest: &BackupManifest) -> Self {
        Self {
            number: manifest.number,
            time_ms: manifest.time_ms,
            bytes: bytes_of(manifest),
            volume_bytes: kreon_base::SegmentId(manifest.superblock.segments).offset_bytes(),
            log_end: manifest.log_end,
        }
    }
}

/// Bytes of pages and pieces.
pub fn bytes_of(manifest: &BackupManifest) -> u64 {
    let pieces = manifest.pieces.iter().map(|piece| u64::from(piece.count));
    (manifest.pages.len() as u64 + pieces.sum::<u64>()) * PAGE_BYTES as u64
}

/// The finished backups, oldest first. One with a damaged manifest ends the list with an error.
///
/// # Errors
/// `NotFound` if there is none; `Corruption`, `InvalidArgument` for a newer version; `Io`.
pub fn list(shelf: &dyn Shelf) -> Result<Vec<BackupInfo>> {
    let numbers = numbers(shelf)?;
    if numbers.is_empty() {
        return Err(none());
    }
    let infos = numbers
        .iter()
        .map(|number| Ok(BackupInfo::of(&manifest(shelf, *number)?)));
    infos.collect()
}

/// Numbers of the finished backups, ascending.
pub fn numbers(shelf: &dyn Shelf) -> Result<Vec<u32>> {
    let mut numbers: Vec<u32> = names(shelf)?
        .filter_map(|name| match name {
            Name::Manifest(number) => Some(number),
            Name::Data(_) => None,
        })
        .collect();
    numbers.sort_unstable();
    Ok(numbers)
}

fn names(shelf: &dyn Shelf) -> Result<impl Iterator<Item = Name>> {
    Ok(shelf
        .names()?
        .into_iter()
        .filter_map(|name| Name::parse(&name)))
}

/// The manifest of a backup.
pub fn manifest(shelf: &dyn Shelf, number: u32) -> Result<BackupManifest> {
    let name = Name::Manifest(number).text();
    let read = || {
        let manifest =
            BackupManifest::decode(&read_whole(shelf.open(&name, Access::Read)?.as_ref())?)?;
        match manifest.number == number {
            true => Ok(manifest),
            false => Err(Error::corruption("a manifest of another backup")),
        }
    };
    read().map_err(|error| error.within(&name))
}

/// The manifest of backup `number`, or of the newest.
///
/// # Errors
/// `NotFound`.
pub fn chosen(shelf: &dyn Shelf, number: Option<u32>) -> Result<BackupManifest> {
    let numbers = numbers(shelf)?;
    match number {
        Some(number) if numbers.contains(&number) => manifest(shelf, number),
        Some(number) => Err(Error::new(
            ErrorKind::NotFound,
            format!("there is no backup {number}; there are {numbers:?}"),
        )),
        None => manifest(shelf, *numbers.last().ok_or_else(none)?),
    }
}

fn none() -> Error {
    Error::new(ErrorKind::NotFound, "there is no finished backup here")
}

/// Writes a manifest beside the others; with its last step the backup is there.
///
/// # Errors
/// `OutOfSpace`, `Io`: it is not.
pub fn publish(shelf: &dyn Shelf, manifest: &BackupManifest) -> Result<u64> {
    let encoded = manifest.encode();
    let mut bytes = AlignedBuf::new(encoded.len());
    bytes.copy_from_slice(&encoded);
    let device = shelf.open(UNFINISHED, Access::Write)?;
    let write = || {
        device.grow(bytes.len() as u64)?;
        device.write_at(0, &bytes)?;
        device.flush()
    };
    write().map_err(|error: Error| error.within(UNFINISHED))?;
    drop(device);
    shelf.rename(UNFINISHED, &Name::Manifest(manifest.number).text())?;
    Ok(encoded.len() as u64)
}

/// Removes what a run that did not end has left: nothing needs it.
///
/// # Errors
/// `Io`.
pub fn sweep(shelf: &dyn Shelf, newest: u32) -> Result<()> {
    for name in shelf.names()? {
        let is_left = match Name::parse(&name) {
            Some(Name::Data(number)) => number > newest,
            Some(Name::Manifest(_)) => false,
            None => name == UNFINISHED,
        };
        if is_left {
            shelf.remove(&name)?;
        }
    }
    Ok(())
}

/// Removes all backups but the newest `keep`, and gives the space back that no other needs. The newest is `manifest`.
///
/// # Errors
/// `Corruption` of an older manifest that is to stay; `Io`. No backup that is to stay is harmed.
pub fn prune(shelf: &dyn Shelf, newest: &BackupManifest, keep: u32) -> Result<()> {
    let numbers = numbers(shelf)?;
    let superfluous = numbers.len().saturating_sub(keep.max(1) as usize);
    if superfluous == 0 {
        return Ok(());
    }
    let (gone, stay) = numbers.split_at(superfluous);
    for number in gone {
        shelf.remove(&Name::Manifest(*number).text())?;
    }
    let mut needed = Needed::default();
    needed.add(newest);
    for number in stay.iter().filter(|number| **number != newest.number) {
        needed.add(&manifest(shelf, *number)?);
    }
    let files: Vec<_> = names(shelf)?
        .filter_map(|name| match name {
            Name::Data(number) => Some(number),
            Name::Manifest(_) => None,
        })
        .collect();
    for number in files {
        let name = Name::Data(number).text();
        match needed.0.remove(&number) {
            None => shelf.remove(&name)?,
            Some(ranges) => discard_others(shelf.open(&name, Access::Write)?.as_ref(), ranges)?,
        }
    }
    Ok(())
}

/// Pages (first, count) of data files that backups need, by file.
#[derive(Default)]
struct Needed(BTreeMap<u32, Vec<(u64, u64)>>);

impl Needed {
    fn add(&mut self, manifest: &BackupManifest) {
        let pages = manifest.pages.iter().map(|page| (page.place, 1));
        let pieces = manifest.pieces.iter();
        let pieces = pieces.map(|piece| (piece.place, u64::from(piece.count)));
        for (BackupPlace { file, page }, count) in pages.chain(pieces) {
            let ranges = self.0.entry(file).or_default();
            match ranges.last_mut() {
                Some((first, before)) if *first + *before == page => *before += count,
                _ => ranges.push((page, count)),
            }
        }
    }
}

/// Gives the space of all pages but `ranges` back.
fn discard_others(device: &dyn Device, mut ranges: Vec<(u64, u64)>) -> Result<()> {
    ranges.sort_unstable();
    let all = device.len_bytes() / PAGE_BYTES as u64;
    let mut free_from = 0;
    for (first, count) in ranges.into_iter().chain([(all, 0)]) {
        if first > free_from {
            let bytes = (first - free_from) * PAGE_BYTES as u64;
            device.discard(free_from * PAGE_BYTES as u64, bytes)?;
        }
        free_from = free_from.max(first + count);
    }
    device.flush()
}
