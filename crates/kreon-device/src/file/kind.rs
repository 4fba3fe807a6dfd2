//! File types that can hold a volume, and their block sizes.

use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use kreon_base::{Error, Result};
use rustix::fs::{AtFlags, FileType, OFlags, SeekFrom, StatxFlags};

use crate::device::{BLOCK_BYTES_MAX, BLOCK_BYTES_MIN};

/// File types that can hold a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Regular,
    BlockDevice,
}

impl Kind {
    /// The type in a mode (`st_mode`); other types are refused.
    pub(super) fn of(mode: u32, path: &Path) -> Result<Self> {
        let what = match FileType::from_raw_mode(mode) {
            FileType::RegularFile => return Ok(Self::Regular),
            FileType::BlockDevice => return Ok(Self::BlockDevice),
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

/// Switches direct I/O on. Returns its block size, or the reason why it cannot be used.
pub(super) fn make_direct(file: impl AsFd, kind: Kind) -> Result<u32, String> {
    let file = file.as_fd();
    let block_bytes = direct_block_bytes(file, kind)?;
    let flags = rustix::fs::fcntl_getfl(file).map_err(|e| e.to_string())?;
    // On the open file, not at `open`: some file systems create the file and refuse the flag afterwards.
    rustix::fs::fcntl_setfl(file, flags | OFlags::DIRECT).map_err(|e| e.to_string())?;
    Ok(block_bytes)
}

fn direct_block_bytes(file: BorrowedFd<'_>, kind: Kind) -> Result<u32, String> {
    let mut block_bytes = BLOCK_BYTES_MIN;
    if kind == Kind::BlockDevice {
        let logical = rustix::fs::ioctl_blksszget(file).map_err(|e| e.to_string())?;
        block_bytes = block_bytes.max(logical);
    } else {
        match rustix::fs::statx(file, "", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN) {
            Ok(stat) if stat.stx_mask & StatxFlags::DIOALIGN.bits() != 0 => {
                if stat.stx_dio_offset_align == 0 {
                    return Err("the file system does not support it for this file".into());
                }
                block_bytes = block_bytes
                    .max(stat.stx_dio_mem_align)
                    .max(stat.stx_dio_offset_align);
            }
            // An old kernel or a file system without this information: a page suits all known ones.
            _ => block_bytes = BLOCK_BYTES_MAX,
        }
    }
    if block_bytes > BLOCK_BYTES_MAX || !block_bytes.is_power_of_two() {
        return Err(format!("it asks for blocks of {block_bytes} bytes"));
    }
    Ok(block_bytes)
}
