//! A volume of a backup; or, without a volume, a look at every byte of the backup.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kreon_base::{
    Checksum, Error, ErrorKind, PAGE_BYTES, PageNo, Result, SEGMENT_BYTES, SegmentId,
};
use kreon_device::{AlignedBuf, Device};
use kreon_format::{
    BackupManifest, BackupPage, BackupPiece, BackupPlace, SUPERBLOCK_PAGES, verify_pointed,
};
use kreon_volume::superblock;

use super::Tell;
use super::data::{read_runs, write_runs};
use super::kept::{self, BackupInfo, bytes_of};
use super::pace::Pace;
use super::shelf::{Access, Name, Shelf};

/// Pages that are read at once.
const ROUND_PAGES: usize = 256;

/// A backup that was restored or checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Restored {
    /// Which.
    pub backup: BackupInfo,
    /// Pages of trees, catalogue and bitmap that verified.
    pub pages: u64,
    /// Pages of logs that verified, those that later ones cover included.
    pub log_pages: u64,
}

/// Writes backup `number`, or the newest, to `target`, which is empty. It is a store with the last write: without that
/// write nothing opens it.
///
/// # Errors
/// `NotFound`; `Corruption` names what does not verify; `InvalidArgument` if `target` is not empty; `OutOfSpace`, `Io`; that
/// of `tell`.
pub fn restore(
    shelf: &dyn Shelf,
    number: Option<u32>,
    target: &Arc<dyn Device>,
    tell: Tell<'_>,
) -> Result<Restored> {
    if target.len_bytes() > 0 {
        return Err(Error::invalid("a backup is restored into an empty file"));
    }
    let manifest = kept::chosen(shelf, number)?;
    let device = target.as_ref();
    make_room(device, &manifest)?;
    let restored = copy(shelf, &manifest, Some(device), tell)?;
    device.flush()?;
    superblock::commit(device, &manifest.superblock)?;
    superblock::mirror(device, &manifest.superblock)?;
    device.flush()?;
    Ok(restored)
}

/// Reads backup `number`, or the newest, and verifies every byte of it.
///
/// # Errors
/// `NotFound`; `Corruption` names the first thing that does not verify; `Io`; that of `tell`.
pub fn check(shelf: &dyn Shelf, number: Option<u32>, tell: Tell<'_>) -> Result<Restored> {
    copy(shelf, &kept::chosen(shelf, number)?, None, tell)
}

/// Makes the volume long enough, and backs the segments in use: the store takes them to have space.
fn make_room(device: &dyn Device, manifest: &BackupManifest) -> Result<()> {
    let pages = manifest
        .pages
        .iter()
        .map(|page| page.pointer.page.segment());
    let pieces = manifest.pieces.iter().map(|piece| piece.segment);
    let used: BTreeSet<SegmentId> = pages.chain(pieces).chain([SegmentId(0)]).collect();
    let last = used.last().map_or(0, |last| last.0 + 1);
    device.grow(SegmentId(last.max(manifest.superblock.segments)).offset_bytes())?;
    for segment in used {
        device.allocate(segment.offset_bytes(), SEGMENT_BYTES)?;
    }
    Ok(())
}

fn copy(
    shelf: &dyn Shelf,
    manifest: &BackupManifest,
    target: Option<&dyn Device>,
    tell: Tell<'_>,
) -> Result<Restored> {
    let is_open = || Ok(());
    let mut pace = Pace::new(tell, &is_open, bytes_of(manifest), None)?;
    let mut copy = Copy {
        files: Files {
            shelf,
            open: BTreeMap::new(),
        },
        manifest,
        target,
        buffer: AlignedBuf::new(ROUND_PAGES * PAGE_BYTES),
    };
    for pages in manifest.pages.chunks(ROUND_PAGES) {
        for pages in pages.chunk_by(|one, other| one.place.file == other.place.file) {
            copy.pages(pages)?;
            pace.moved((pages.len() * PAGE_BYTES) as u64)?;
        }
    }
    pace.step("log")?;
    for piece in &manifest.pieces {
        copy.piece(piece)?;
        pace.moved(u64::from(piece.count) * PAGE_BYTES as u64)?;
    }
    pace.finish()?;
    let pieces = manifest.pieces.iter().map(|piece| u64::from(piece.count));
    Ok(Restored {
        backup: BackupInfo::of(manifest),
        pages: manifest.pages.len() as u64,
        log_pages: pieces.sum(),
    })
}

/// The data files that were opened.
struct Files<'a> {
    shelf: &'a dyn Shelf,
    open: BTreeMap<u32, Arc<dyn Device>>,
}

impl Files<'_> {
    fn get(&mut self, number: u32) -> Result<Arc<dyn Device>> {
        if let Some(device) = self.open.get(&number) {
            return Ok(Arc::clone(device));
        }
        let name = Name::Data(number).text();
        let opened = self.shelf.open(&name, Access::Read);
        let device = opened.map_err(|error| match error.kind() {
            ErrorKind::NotFound => Error::corruption(format!("{name} is missing")),
            _ => error,
        })?;
        self.open.insert(number, Arc::clone(&device));
        Ok(device)
    }
}

struct Copy<'a> {
    files: Files<'a>,
    manifest: &'a BackupManifest,
    target: Option<&'a dyn Device>,
    buffer: AlignedBuf,
}

impl Copy<'_> {
    /// Pages that stand in one file.
    fn pages(&mut self, pages: &[BackupPage]) -> Result<()> {
        let Some(first) = pages.first() else {
            return Ok(());
        };
        let places: Vec<PageNo> = pages.iter().map(|page| PageNo(page.place.page)).collect();
        let bytes = read(&mut self.files, (first.place, &places), &mut self.buffer)?;
        let numbers: Vec<PageNo> = pages.iter().map(|page| page.pointer.page).collect();
        for (page, bytes) in pages.iter().zip(bytes.as_chunks::<PAGE_BYTES>().0) {
            verify_pointed(bytes, self.manifest.superblock.store, &page.pointer)
                .map_err(|error| error.within(at(page.place)))?;
        }
        check_places(&numbers)?;
        match self.target {
            Some(target) => write_runs(target, &numbers, bytes),
            None => Ok(()),
        }
    }

    fn piece(&mut self, piece: &BackupPiece) -> Result<()> {
        let first = piece.segment.first_page().0 + u64::from(piece.first);
        let within: Vec<u64> = (0..u64::from(piece.count)).collect();
        let mut checksum = Checksum::new();
        for part in within.chunks(ROUND_PAGES) {
            let of = |from: u64| {
                part.iter()
                    .map(|page| PageNo(from + page))
                    .collect::<Vec<_>>()
            };
            let (places, numbers) = (of(piece.place.page), of(first));
            let bytes = read(&mut self.files, (piece.place, &places), &mut self.buffer)?;
            checksum = checksum.with(bytes);
            check_places(&numbers)?;
            if let Some(target) = self.target {
                write_runs(target, &numbers, bytes)?;
            }
        }
        match checksum.finish() == piece.checksum {
            true => Ok(()),
            false => Err(Error::corruption(format!(
                "{}: the log of {} has another checksum",
                at(piece.place),
                piece.segment
            ))),
        }
    }
}

/// No page of a manifest may replace a superblock.
fn check_places(pages: &[PageNo]) -> Result<()> {
    match pages.iter().find(|page| SUPERBLOCK_PAGES.contains(page)) {
        None => Ok(()),
        Some(page) => Err(Error::corruption(format!("{page} is a superblock slot"))),
    }
}

/// Reads pages of the file of `place`.
fn read<'b>(
    files: &mut Files<'_>,
    (place, pages): (BackupPlace, &[PageNo]),
    buffer: &'b mut AlignedBuf,
) -> Result<&'b [u8]> {
    let device = files.get(place.file)?;
    let end = pages.iter().map(|page| page.0 + 1).max().unwrap_or(0);
    if device.len_bytes() / (PAGE_BYTES as u64) < end {
        let name = Name::Data(place.file).text();
        return Err(Error::corruption(format!("{name} was cut off")));
    }
    let bytes = buffer
        .get_mut(..pages.len() * PAGE_BYTES)
        .unwrap_or_default();
    read_runs(device.as_ref(), pages, bytes).map_err(|error| error.within(at(place)))?;
    Ok(bytes)
}

fn at(place: BackupPlace) -> String {
    format!("{}, page {}", Name::Data(place.file).text(), place.page)
}
