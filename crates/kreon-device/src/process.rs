//! Telling the process that opened a volume from one that was forked from it.
//!
//! A forked child has a copy of all memory and shares all files, but none of the threads: what it did to a volume that
//! its parent has open would be lost, or would take away what the parent does. To ask for the number of the process is a
//! system call; instead a page of memory that the kernel wipes in every child (`MADV_WIPEONFORK`, Linux 4.14) tells by
//! one load. Where there is no such page, the number of the process is asked for.

use std::fmt;
use std::ptr;
use std::sync::atomic::{
    AtomicPtr, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};

use kreon_base::{Error, ErrorKind, PAGE_BYTES, Result};
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

/// The page; null before it was first asked for. Not a lock: a child that was forked while another thread made the page
/// would wait for ever.
static PAGE: AtomicPtr<AtomicU64> = AtomicPtr::new(ptr::null_mut());

/// Numbers that were given to processes, in memory that a child has a copy of: its number is one that none of its
/// ancestors had at the time of the fork.
static NUMBERS: AtomicU64 = AtomicU64::new(0);

/// The devices that are open: above, the token of the process that opened them, below, how many. A child that was forked
/// while there are any finds another token than its own.
static OPEN: AtomicU64 = AtomicU64::new(0);

/// Bits of [`OPEN`] that count.
const COUNT_BITS: u32 = 24;

/// The process in which this was made.
#[derive(Clone, Copy)]
pub struct HomeProcess {
    /// Shows `number` in that process, and something else in its children.
    page: Option<&'static AtomicU64>,
    number: u64,
    id: u32,
}

impl HomeProcess {
    /// This process.
    pub fn this() -> Self {
        let page = wiped_page();
        Self {
            page,
            number: page.map_or(0, number_in),
            id: std::process::id(),
        }
    }

    /// Whether the calling process is the one in which this was made. Takes no lock.
    #[inline]
    pub fn is_this(&self) -> bool {
        match self.page {
            Some(page) => page.load(Relaxed) == self.number,
            None => std::process::id() == self.id,
        }
    }

    /// # Errors
    /// `Closed` in a process that was forked from the one in which this was made.
    #[inline]
    pub fn check(&self) -> Result<()> {
        match self.is_this() {
            true => Ok(()),
            false => Err(self.elsewhere()),
        }
    }

    /// What tells this process from those that it has a copy of [`OPEN`] from.
    fn token(&self) -> u64 {
        match self.page {
            Some(_) => self.number,
            None => u64::from(self.id),
        }
    }

    #[cold]
    fn elsewhere(&self) -> Error {
        Error::new(
            ErrorKind::Closed,
            format!(
                "the store was opened by process {}, and this is a process forked from it: it cannot use what it \
                 inherited; nothing was done",
                self.id
            ),
        )
    }
}

/// One open device of a process, until it is dropped there.
///
/// The locks that threads wait at keep tables of their own, for the whole process (`parking_lot`). A child that is forked
/// while other threads wait has a copy in which they wait for ever: it would hang at a lock of a store of its own, now and
/// then. So it may have none. Where nothing was open at the fork, nobody waited.
pub(crate) struct OpenDevice(HomeProcess);

impl OpenDevice {
    /// Counts one more.
    ///
    /// # Errors
    /// `Closed` in a process that was forked from another while that had devices open.
    pub fn new() -> Result<Self> {
        let home = HomeProcess::this();
        let own = home.token() << COUNT_BITS;
        let counted = OPEN.fetch_update(Relaxed, Relaxed, |open| {
            let (token, count) = (open >> COUNT_BITS, open & ((1 << COUNT_BITS) - 1));
            match count {
                0 => Some(own | 1),
                _ if token == home.token() => Some(open + 1),
                _ => None,
            }
        });
        match counted {
            Ok(_) => Ok(Self(home)),
            Err(_) => Err(Error::new(
                ErrorKind::Closed,
                "this process was forked from one that had a store open, and cannot open any: fork before a store is \
                 opened or after all are closed, or let the child execute a program",
            )),
        }
    }

    /// Where it was opened.
    pub fn home(&self) -> &HomeProcess {
        &self.0
    }
}

impl Drop for OpenDevice {
    fn drop(&mut self) {
        if self.0.is_this() {
            OPEN.fetch_sub(1, Relaxed);
        }
    }
}

impl fmt::Debug for HomeProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("HomeProcess").field(&self.id).finish()
    }
}

/// The number in the page; gives one to a process that has none yet.
fn number_in(page: &AtomicU64) -> u64 {
    let number = page.load(Relaxed);
    if number != 0 {
        return number;
    }
    let number = NUMBERS.fetch_add(1, Relaxed) + 1;
    match page.compare_exchange(0, number, Relaxed, Relaxed) {
        Ok(_) => number,
        Err(others) => others,
    }
}

/// A page that is all zeroes in every process at first. `None` if the system has no such thing.
fn wiped_page() -> Option<&'static AtomicU64> {
    let mut page = PAGE.load(Acquire);
    if page.is_null() {
        let made = make_page()?;
        page = match PAGE.compare_exchange(ptr::null_mut(), made, Release, Acquire) {
            Ok(_) => made,
            Err(others) => {
                // SAFETY: `made` is the start of a mapping of this length that nobody else knows of.
                let _ = unsafe { munmap(made.cast(), PAGE_BYTES) };
                others
            }
        };
    }
    // SAFETY: what `PAGE` holds is the aligned start of a mapping that is never given up. It is readable and writable,
    // its zeroes are a valid `AtomicU64`, and it is only used as such.
    Some(unsafe { &*page })
}

fn make_page() -> Option<*mut AtomicU64> {
    let access = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a new mapping at a place that the kernel chooses touches no memory that is in use.
    let start =
        unsafe { mmap_anonymous(ptr::null_mut(), PAGE_BYTES, access, MapFlags::PRIVATE) }.ok()?;
    // SAFETY: the range is the mapping that was just made; the advice changes what children of this process see of it.
    let advised = unsafe { madvise(start, PAGE_BYTES, Advice::LinuxWipeOnFork) };
    if advised.is_err() {
        // SAFETY: the mapping was made above, and nobody else knows of it.
        let _ = unsafe { munmap(start, PAGE_BYTES) };
        return None;
    }
    Some(start.cast())
}

#[cfg(test)]
mod tests {
    use super::*;

    unsafe extern "C" {
        fn fork() -> i32;
        fn waitpid(process: i32, status: *mut i32, options: i32) -> i32;
        fn _exit(status: i32) -> !;
    }

    /// Whether `check` holds in a forked child, which does nothing else.
    fn holds_in_child(check: impl FnOnce() -> bool) -> bool {
        // SAFETY: the child calls `check`, which takes no lock but that of the allocator, which the C library gives it
        // free, and ends.
        let child = unsafe { fork() };
        if child == 0 {
            let status = i32::from(!check());
            // SAFETY: ends the child at once.
            unsafe { _exit(status) }
        }
        assert!(child > 0);
        let mut status = -1;
        // SAFETY: `status` is a valid place for an `int`; the child is one of this process.
        let ended = unsafe { waitpid(child, &raw mut status, 0) };
        ended == child && status == 0
    }

    #[test]
    fn a_child_and_its_child_are_other_processes_with_homes_of_their_own() {
        assert!(wiped_page().is_some(), "this kernel has MADV_WIPEONFORK");
        let home = HomeProcess::this();
        assert!(home.is_this() && HomeProcess::this().is_this());
        assert!(holds_in_child(|| {
            let is_other = !home.is_this();
            let own = HomeProcess::this();
            let is_own = own.is_this() && !home.is_this();
            is_other && is_own && holds_in_child(|| !home.is_this() && !own.is_this())
        }));
        assert!(home.is_this());
    }

    #[test]
    fn a_child_opens_devices_of_its_own_if_its_parent_had_none_open() {
        // Other tests of this process have devices open now and then: so all is done in children.
        let alone = || {
            OPEN.store(0, Relaxed);
            drop(OpenDevice::new());
            let opens_own = || OpenDevice::new().and_then(|_| OpenDevice::new()).is_ok();
            let open = (OpenDevice::new(), OpenDevice::new());
            let is_refused = holds_in_child(|| OPEN.load(Relaxed) != 0 && !opens_own());
            drop(open);
            is_refused && holds_in_child(opens_own) && opens_own()
        };
        assert!(holds_in_child(alone));
    }

    #[test]
    fn without_the_page_the_number_of_the_process_tells() {
        let home = HomeProcess {
            page: None,
            ..HomeProcess::this()
        };
        assert!(home.is_this() && home.check().is_ok());
        assert!(holds_in_child(|| !home.is_this()));
        let other = HomeProcess { id: 1, ..home };
        assert_eq!(other.check().unwrap_err().kind(), ErrorKind::Closed);
    }
}
