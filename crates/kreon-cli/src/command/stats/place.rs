//! What a store is from outside: its path, its regions, its blocks on the disk.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use kreon::{Stats, Store};

use crate::session::Session;

/// `st_blocks` counts in these, whatever the file system's own blocks are.
const BLOCK_BYTES: u64 = 512;

pub struct Place {
    pub path: PathBuf,
    /// Blocks of a file; the volume on a device, which has no blocks of its own.
    pub disk_bytes: u64,
    pub regions: Vec<String>,
}

impl Place {
    pub fn of(session: &Session, store: &Store, stats: &Stats) -> Self {
        let path = session.path().to_owned();
        let file = fs::metadata(&path).ok().filter(fs::Metadata::is_file);
        Self {
            path,
            disk_bytes: file.map_or(stats.volume_bytes, |file| file.blocks() * BLOCK_BYTES),
            regions: store.region_names(),
        }
    }
}
