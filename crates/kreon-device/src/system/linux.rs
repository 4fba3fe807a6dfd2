//! Linux.

use std::os::fd::BorrowedFd;
use std::ptr::{self, NonNull};
use std::sync::atomic::AtomicU64;

use kreon_base::PAGE_BYTES;
use rustix::fs::{AtFlags, FallocateFlags, OFlags, StatxFlags};
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

use crate::bounds::{BLOCK_BYTES_MAX, BLOCK_BYTES_MIN};
use crate::file::Kind;

/// Switches direct I/O on. Returns its block size, or the reason why it cannot be used.
pub(crate) fn make_direct(file: BorrowedFd<'_>, kind: Kind) -> Result<u32, String> {
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

/// Allocates blocks for a range; the length stays.
pub(crate) fn allocate(
    file: BorrowedFd<'_>,
    offset: u64,
    len_bytes: u64,
) -> rustix::io::Result<()> {
    rustix::fs::fallocate(file, FallocateFlags::KEEP_SIZE, offset, len_bytes)
}

/// Gives the blocks of a range back; it reads as zeroes.
pub(crate) fn discard(file: BorrowedFd<'_>, offset: u64, len_bytes: u64) -> rustix::io::Result<()> {
    let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    rustix::fs::fallocate(file, flags, offset, len_bytes)
}

/// Makes what was written durable.
pub(crate) fn flush(file: BorrowedFd<'_>) -> rustix::io::Result<()> {
    rustix::fs::fdatasync(file)
}

/// Switches the kernel's readahead off.
pub(crate) fn no_readahead(file: BorrowedFd<'_>) -> rustix::io::Result<()> {
    rustix::fs::fadvise(file, 0, None, rustix::fs::Advice::Random)
}

/// Asks for huge pages for whole pages of memory of the caller, which starts on the boundary of one. Without them small
/// pages are used.
#[cfg(not(miri))]
pub(crate) fn want_huge_pages(start: NonNull<u8>, len_bytes: usize) {
    // SAFETY: the advice changes no byte of the range and leaves it mapped as it is. A range that is not mapped is an
    // error, which changes nothing.
    let _ = unsafe { madvise(start.as_ptr().cast(), len_bytes, Advice::LinuxHugepage) };
}

#[cfg(miri)]
pub(crate) fn want_huge_pages(_: NonNull<u8>, _: usize) {}

/// A page of zeroes, readable and writable, never unmapped, that the kernel zeroes again in every child. `None` if it
/// cannot.
pub(crate) fn forked_page() -> Option<NonNull<AtomicU64>> {
    let access = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a new mapping at an address that the kernel chooses overlaps no memory in use.
    let start =
        unsafe { mmap_anonymous(ptr::null_mut(), PAGE_BYTES, access, MapFlags::PRIVATE) }.ok()?;
    // SAFETY: the range is the mapping just made; the advice changes only what forked children see of it.
    let advised = unsafe { madvise(start, PAGE_BYTES, Advice::LinuxWipeOnFork) };
    if advised.is_err() {
        // SAFETY: the mapping was made above and is known to nobody else.
        let _ = unsafe { munmap(start, PAGE_BYTES) };
        return None;
    }
    NonNull::new(start.cast())
}
