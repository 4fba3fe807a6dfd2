//! The block device under a folder.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::Context;

/// See the module's text.
#[derive(Clone, Debug)]
pub struct Disk {
    /// Its folder in sysfs.
    sys: PathBuf,
}

/// What a device transferred since the machine was started.
#[derive(Clone, Copy, Debug, Default)]
pub struct Transferred {
    /// Reads.
    pub reads: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Writes.
    pub writes: u64,
    /// Bytes written.
    pub write_bytes: u64,
}

/// The unit of the kernel's block statistics, whatever the device's.
const SECTOR_BYTES: u64 = 512;

impl Disk {
    /// The device that holds `dir`.
    ///
    /// # Errors
    /// If there is none: a file system in memory, or one that is not told.
    pub fn under(dir: &Path) -> anyhow::Result<Self> {
        let device = fs::metadata(dir)?.dev();
        let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
        let sys = PathBuf::from(format!("/sys/dev/block/{major}:{minor}"));
        let sys = fs::canonicalize(&sys)
            .with_context(|| format!("no block device {major}:{minor} under {}", dir.display()))?;
        Ok(Self { sys })
    }

    /// Its name.
    pub fn name(&self) -> String {
        let name = self.sys.file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    }

    /// What it transferred so far.
    pub fn transferred(&self) -> Transferred {
        let stat = fs::read_to_string(self.sys.join("stat")).unwrap_or_default();
        let numbers: Vec<u64> = stat
            .split_whitespace()
            .filter_map(|n| n.parse().ok())
            .collect();
        let at = |index: usize| numbers.get(index).copied().unwrap_or(0);
        Transferred {
            reads: at(0),
            read_bytes: at(2) * SECTOR_BYTES,
            writes: at(4),
            write_bytes: at(6) * SECTOR_BYTES,
        }
    }

    /// A setting of its queue; a partition has that of its disk.
    pub fn queue(&self, setting: &str) -> Option<String> {
        let mut folders = [Some(self.sys.as_path()), self.sys.parent()]
            .into_iter()
            .flatten();
        let text =
            folders.find_map(|dir| fs::read_to_string(dir.join("queue").join(setting)).ok())?;
        Some(text.trim().to_owned())
    }
}
