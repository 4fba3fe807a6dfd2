//! What a store is from outside: its path, its blocks on the disk.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use serde_json::{Value, json};

/// `st_blocks` counts in these, whatever the file system's own blocks are.
const BLOCK_BYTES: u64 = 512;

pub struct Place {
    path: String,
    /// Blocks of a file; a device has none of its own.
    disk_bytes: Option<u64>,
}

impl Place {
    pub fn at(path: &Path) -> Self {
        let file = fs::metadata(path).ok().filter(fs::Metadata::is_file);
        Self {
            path: path.to_string_lossy().into_owned(),
            disk_bytes: file.map(|file| file.blocks() * BLOCK_BYTES),
        }
    }

    /// Adds the fields of the place to the figures of the store. On a device it takes the volume.
    pub fn add_to(self, figures: &mut Value) {
        let volume_bytes = figures.get("volume_bytes").cloned();
        if let Some(fields) = figures.as_object_mut() {
            let disk_bytes = self.disk_bytes.map(Value::from).or(volume_bytes);
            fields.insert("path".to_owned(), json!(self.path));
            fields.insert("disk_bytes".to_owned(), json!(disk_bytes));
        }
    }
}
