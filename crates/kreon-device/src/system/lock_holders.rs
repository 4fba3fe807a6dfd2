//! The processes that hold locks on a file, from the kernel's list of all locks.

use std::fs;
use std::os::unix::fs::MetadataExt;

use rustix::fs::Stat;

use crate::file::Holder;

/// The processes that hold a `flock` on the file, each once, in the order of the list. Those in other namespaces of
/// processes than the caller's are not listed.
pub(crate) fn lock_holders(file: &Stat) -> Vec<Holder> {
    let list = fs::read_to_string("/proc/locks").unwrap_or_default();
    let mut holders: Vec<Holder> = Vec::new();
    for lock in list.lines().filter_map(Lock::parse) {
        let is_known = holders.iter().any(|holder| holder.pid == lock.pid);
        if !is_known && lock.is_on(file) {
            let name = fs::read_to_string(format!("/proc/{}/comm", lock.pid)).ok();
            let name = name.map(|name| name.trim_end_matches('\n').to_owned());
            let pid = lock.pid;
            holders.push(Holder { pid, name });
        }
    }
    holders
}

/// A line of the list.
#[derive(Debug, PartialEq, Eq)]
struct Lock {
    pid: u32,
    major: u32,
    minor: u32,
    inode: u64,
}

impl Lock {
    /// Of `1: FLOCK  ADVISORY  WRITE 1234 fe:00:5365770 0 EOF`; `None` for other locks, and for those that wait (`->`).
    fn parse(line: &str) -> Option<Self> {
        let mut words = line.split_ascii_whitespace().skip(1);
        if words.next()? != "FLOCK" {
            return None;
        }
        let pid = words.nth(2)?.parse().ok()?;
        let mut place = words.next()?.split(':');
        Some(Self {
            pid,
            major: u32::from_str_radix(place.next()?, 16).ok()?,
            minor: u32::from_str_radix(place.next()?, 16).ok()?,
            inode: place.next()?.parse().ok()?,
        })
    }

    fn is_on(&self, file: &Stat) -> bool {
        let (major, minor) = (
            rustix::fs::major(file.st_dev),
            rustix::fs::minor(file.st_dev),
        );
        self.inode == file.st_ino
            && ((self.major, self.minor) == (major, minor) || self.has_open(file))
    }

    /// Whether the process has the file open. Some file systems (btrfs, overlays) tell another device in the list than
    /// to `stat`.
    fn has_open(&self, file: &Stat) -> bool {
        let Ok(open) = fs::read_dir(format!("/proc/{}/fd", self.pid)) else {
            return false;
        };
        let about = open.filter_map(|entry| fs::metadata(entry.ok()?.path()).ok());
        about
            .into_iter()
            .any(|about| (about.dev(), about.ino()) == (file.st_dev, file.st_ino))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locks_of_the_list_are_read_and_others_passed_over() {
        let lock = Lock::parse("12: FLOCK  ADVISORY  WRITE 345 fe:10:5365770 0 EOF");
        let expected = Lock {
            pid: 345,
            major: 0xfe,
            minor: 0x10,
            inode: 5_365_770,
        };
        assert_eq!(lock, Some(expected));
        for other in [
            "1: POSIX  ADVISORY  WRITE 345 fe:10:5365770 0 EOF",
            "1: -> FLOCK  ADVISORY  WRITE 345 fe:10:5365770 0 EOF",
            "1: FLOCK  ADVISORY  WRITE x fe:10:5365770 0 EOF",
            "1: FLOCK  ADVISORY  WRITE 345 fe:10",
            "",
        ] {
            assert_eq!(Lock::parse(other), None, "{other}");
        }
    }
}
