//! Detection of forked processes.
//!
//! A forked child has a copy of all memory and shares all files, but has none of the threads. If it used a volume that
//! its parent has open, its writes would be lost or would overwrite the parent's. A process id costs a system call for
//! each check; instead one load reads a page that the kernel zeroes in every child (`MADV_WIPEONFORK`, Linux 4.14).
//! Where there is no such page, the process id is used.

use std::fmt;
use std::ptr;
use std::sync::atomic::{
    AtomicPtr, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};

use kreon_base::{Error, ErrorKind, PAGE_BYTES, Result};
use rustix::mm::munmap;

use crate::system::forked_page;

/// The page; null before the first use. Not behind a lock: a child forked while another thread creates the page would
/// wait for ever.
static PAGE: AtomicPtr<AtomicU64> = AtomicPtr::new(ptr::null_mut());

/// The last number given to a process. A child inherits the counter, so its number differs from those that its
/// ancestors had at the fork.
static NUMBERS: AtomicU64 = AtomicU64::new(0);

/// Open devices: the upper bits are the token of the process that opened them, the lower bits their number. A child
/// forked while the number is above 0 finds a token that is not its own.
static OPEN: AtomicU64 = AtomicU64::new(0);

/// Bits of [`OPEN`] for the number of devices.
const COUNT_BITS: u32 = 24;

/// The process in which this value was created.
#[derive(Clone, Copy)]
pub struct HomeProcess {
    /// Holds `number` in that process and another value in its children.
    page: Option<&'static AtomicU64>,
    number: u64,
    id: u32,
}

impl HomeProcess {
    /// The calling process.
    pub fn this() -> Self {
        let page = wiped_page();
        Self {
            page,
            number: page.map_or(0, number_in),
            id: std::process::id(),
        }
    }

    /// Whether the calling process is the one that created this value. Takes no lock.
    #[inline]
    pub fn is_this(&self) -> bool {
        match self.page {
            Some(page) => page.load(Relaxed) == self.number,
            None => std::process::id() == self.id,
        }
    }

    /// Fails unless the calling process is the one that created this value.
    ///
    /// # Errors
    /// `Closed` in a process forked from that one.
    #[inline]
    pub fn check(&self) -> Result<()> {
        match self.is_this() {
            true => Ok(()),
            false => Err(self.elsewhere()),
        }
    }

    /// Identifies this process among those that inherited [`OPEN`].
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

/// One open device of a process, counted until the owner drops it.
///
/// `parking_lot` keeps queues of waiting threads in tables of the process. A child forked while other threads wait
/// inherits queues of threads that never run there, and would now and then hang at a lock of its own store. So such a
/// child may not open a device. If none was open at the fork, no thread was waiting.
pub(crate) struct OpenDevice(HomeProcess);

impl OpenDevice {
    /// Counts one more open device.
    ///
    /// # Errors
    /// `Closed` in a process that was forked while its parent had devices open.
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

    /// The process that opened the device.
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

/// The number of this process, from its page; assigns one at the first use.
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

/// A page that reads as zeroes in each process until it is written. `None` if the kernel has no such pages.
fn wiped_page() -> Option<&'static AtomicU64> {
    let mut page = PAGE.load(Acquire);
    if page.is_null() {
        let made = forked_page()?.as_ptr();
        page = match PAGE.compare_exchange(ptr::null_mut(), made, Release, Acquire) {
            Ok(_) => made,
            Err(others) => {
                // SAFETY: `made` is the start of a mapping of this length, which only this thread knows.
                let _ = unsafe { munmap(made.cast(), PAGE_BYTES) };
                others
            }
        };
    }
    // SAFETY: a non-null `PAGE` is the aligned start of a mapping that is never unmapped. It is readable and writable,
    // its zeroes are a valid `AtomicU64`, and it is used only as such.
    Some(unsafe { &*page })
}

#[cfg(test)]
mod tests {
    use super::*;

    unsafe extern "C" {
        fn fork() -> i32;
        fn waitpid(process: i32, status: *mut i32, options: i32) -> i32;
        fn _exit(status: i32) -> !;
    }

    /// Whether `check` holds in a forked child that does nothing else.
    fn holds_in_child(check: impl FnOnce() -> bool) -> bool {
        // SAFETY: the child calls `check`, which takes no lock except that of the allocator (the C library makes it
        // usable in a child), and exits.
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
        let is_linux = cfg!(all(target_os = "linux", not(feature = "portable")));
        assert_eq!(wiped_page().is_some(), is_linux, "MADV_WIPEONFORK");
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
        // Other tests of this process may have devices open, so everything happens in children.
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
