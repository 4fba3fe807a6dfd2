//! A store in a file or on a block device.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

use kreon_base::{Error, ErrorKind, PAGE_BYTES, PageNo, Result};
use kreon_device::{Device, FileDevice, FileOptions};
use kreon_format::{SUPERBLOCK_PAGES, StoreId};
use kreon_volume::creation;
use kreon_volume::page_io::{is_there, read_pages};

use super::opening::random;
use super::options::Options;
use super::store::Store;
use super::superblocks::{self, Found};
use crate::format::Superblock;

/// What becomes of a path without a store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Creation {
    /// Nothing: the opening fails.
    Never,
    /// A store, if there is no file or an empty one.
    #[default]
    IfEmpty,
    /// A store, also over other content, which is lost. Never over a store of any engine, whole or damaged.
    OverContent,
}

impl Store {
    /// Opens the store in the file or block device at `path`.
    ///
    /// # Errors
    /// `NotFound`: there is no store, and none is to be made. `InvalidArgument`: something else is there, or the memory is
    /// too little. `Busy`: open elsewhere. `Corruption`, `OutOfSpace`, `Io`.
    pub fn open_file(
        path: impl AsRef<Path>,
        options: &Options,
        creation: Creation,
    ) -> Result<Self> {
        let file = FileOptions {
            create: creation != Creation::Never,
            ..FileOptions::default()
        };
        let (device, _) = FileDevice::open(path, &file)?;
        let device: Arc<dyn Device> = Arc::new(device);
        prepare(device.as_ref(), creation)?;
        Self::open(device, options)
    }

    /// Whether a store of Tucana is in the file or block device at `path`, which need not be whole. Reads the superblock
    /// without opening the store; a file that is not there has none.
    ///
    /// # Errors
    /// `Io`.
    pub fn is_at(path: impl AsRef<Path>) -> Result<bool> {
        let path = path.as_ref();
        let file = match File::open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            file => file,
        };
        let mut bytes = Vec::new();
        let pages_max = 1 + SUPERBLOCK_PAGES
            .map(|page| page.0)
            .into_iter()
            .fold(0, u64::max);
        let read = file.and_then(|file| {
            let head = file.take(pages_max * PAGE_BYTES as u64);
            { head }.read_to_end(&mut bytes)
        });
        read.map_err(|error| Error::io(format!("read {}", path.display()), error))?;
        let (pages, _) = bytes.as_chunks::<PAGE_BYTES>();
        let slots = SUPERBLOCK_PAGES.iter();
        let mut slots = slots.filter_map(|page| pages.get(page.0 as usize));
        Ok(slots.any(|page| Superblock::engine_of(page) == Some(Superblock::ENGINE)))
    }
}

/// Sees to it that the device holds a store, or may become one.
fn prepare(device: &dyn Device, creation: Creation) -> Result<()> {
    let error = match superblocks::read(device) {
        Ok(Found::Nothing) if creation == Creation::Never => {
            return Err(Error::new(ErrorKind::NotFound, "there is no store"));
        }
        Ok(_) => return Ok(()),
        Err(error) => error,
    };
    if !matches!(
        error.kind(),
        ErrorKind::InvalidArgument | ErrorKind::NotFound
    ) {
        return Err(error);
    }
    match engine_on(device)? {
        None => {}
        // It says what this build cannot read.
        Some(Superblock::ENGINE) => return Err(error),
        Some(engine) => return Err(Superblock::of_other(engine)),
    }
    match creation {
        // What the device holds counts for nothing once this is durable.
        Creation::OverContent => creation::begin(device, StoreId(random())),
        Creation::Never | Creation::IfEmpty => Err(Error::invalid(
            "not a store of tucana: it was left untouched; `Creation::OverContent` or `kreon put --engine tucana \
             --format-store` would overwrite it",
        )),
    }
}

/// The engine that is named where engines have their superblocks: in the slots, and in the first pages, where KVell has its own.
fn engine_on(device: &dyn Device) -> Result<Option<&'static str>> {
    const KVELL_SLOTS: u64 = 4;
    let first = (0..KVELL_SLOTS).map(PageNo);
    let is_there = |page: &PageNo| is_there(device, *page);
    let pages: Vec<PageNo> = first.chain(SUPERBLOCK_PAGES).filter(is_there).collect();
    if pages.is_empty() {
        return Ok(None);
    }
    let read = read_pages(device, &pages)?;
    Ok(read.pages().find_map(Superblock::engine_of))
}
