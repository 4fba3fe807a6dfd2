//! File types that can hold a volume.

use std::os::fd::BorrowedFd;
use std::path::Path;

use kreon_base::{Error, Result};
use rustix::fs::{FileType, RawMode, SeekFrom};

/// File types that can hold a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Regular,
    BlockDevice,
}

impl Kind {
    /// The type in a mode (`st_mode`); other types are refused.
    pub(super) fn of(mode: RawMode, path: &Path) -> Result<Self> {
        let what = match FileType::from_raw_mode(mode) {
            FileType::RegularFile => return Ok(Self::Regular),
            // Elsewhere their length is not where `lseek` looks for it.
            FileType::BlockDevice if cfg!(target_os = "linux") => return Ok(Self::BlockDevice),
            FileType::BlockDevice => "a block device, which is a volume on Linux only",
            FileType::Directory => "a directory",
            FileType::Fifo => "a pipe",
            FileType::Socket => "a socket",
            FileType::CharacterDevice => "a character device",
            _ => "of an unknown kind",
        };
        Err(Error::invalid(format!(
            "{} is {what}, not a file or a block device",
            path.display()
        )))
    }

    /// Current length in bytes.
    pub(super) fn len_bytes(self, file: BorrowedFd<'_>) -> rustix::io::Result<u64> {
        match self {
            Self::Regular => {
                let size = rustix::fs::fstat(file)?.st_size;
                Ok(u64::try_from(size).unwrap_or(0))
            }
            Self::BlockDevice => rustix::fs::seek(file, SeekFrom::End(0)),
        }
    }
}
