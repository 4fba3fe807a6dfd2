//! Opening, creating and locking a file.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::{Duration, Instant};

use kreon_base::{Error, ErrorKind, Result};
use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use super::holders::busy;
use super::kind::Kind;
use super::options::FileOptions;

/// Opens `path`, creates it if asked to, and locks it against conflicting opens. Returns whether it was created, too.
pub(super) fn open(path: &Path, options: &FileOptions) -> Result<(OwnedFd, Kind, bool)> {
    let (file, created) = match existing_kind(path)? {
        Some(kind) => (open_existing(path, kind, options)?, false),
        None if options.create => open_new(path, options)?,
        None => return Err(failure(path, "open", Errno::NOENT)),
    };
    let stat = rustix::fs::fstat(&file).map_err(|e| failure(path, "examine", e))?;
    let kind = Kind::of(stat.st_mode, path)?;
    lock(&file, path, options)?;
    if created {
        sync_folder(path)?;
    }
    Ok((file, kind, created))
}

/// The type of the file at `path`. Asked before the open, because opening a pipe may wait for ever.
fn existing_kind(path: &Path) -> Result<Option<Kind>> {
    match rustix::fs::stat(path) {
        Ok(stat) => Kind::of(stat.st_mode, path).map(Some),
        Err(Errno::NOENT) => Ok(None),
        Err(error) => Err(failure(path, "open", error)),
    }
}

fn open_existing(path: &Path, kind: Kind, options: &FileOptions) -> Result<OwnedFd> {
    let mut flags = access(options);
    if kind == Kind::BlockDevice && !options.read_only {
        // Claims the device, also against file systems mounted from it.
        flags |= OFlags::EXCL;
    }
    let start = Instant::now();
    loop {
        match rustix::fs::open(path, flags, Mode::empty()) {
            Err(Errno::BUSY) if flags.contains(OFlags::EXCL) && start.elapsed() < LOCK_PATIENCE => {
                std::thread::sleep(PAUSE);
            }
            Err(Errno::BUSY) if flags.contains(OFlags::EXCL) => return Err(busy(path)),
            opened => return opened.map_err(|e| failure(path, "open", e)),
        }
    }
}

/// Creates the file, or opens it if another process has just created it.
fn open_new(path: &Path, options: &FileOptions) -> Result<(OwnedFd, bool)> {
    let mode = Mode::from_raw_mode(0o644);
    match rustix::fs::open(path, access(options) | OFlags::CREATE | OFlags::EXCL, mode) {
        Ok(file) => Ok((file, true)),
        Err(Errno::EXIST) => open_existing(path, Kind::Regular, options).map(|file| (file, false)),
        Err(error) => Err(failure(path, "create", error)),
    }
}

fn access(options: &FileOptions) -> OFlags {
    let access = if options.read_only {
        OFlags::RDONLY
    } else {
        OFlags::RDWR
    };
    access | OFlags::CLOEXEC | OFlags::NOCTTY
}

/// How long an open waits for the lock or for a claimed block device. The kernel tears down the rings of a killed
/// process in the background, and they keep its file and lock until then: a few milliseconds, a second under load. A
/// child that was just forked keeps both until it executes its program.
const LOCK_PATIENCE: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(5);

/// `flock` belongs to the open file description, so two opens in one process conflict as well.
fn lock(file: &OwnedFd, path: &Path, options: &FileOptions) -> Result<()> {
    let operation = if options.read_only {
        FlockOperation::NonBlockingLockShared
    } else {
        FlockOperation::NonBlockingLockExclusive
    };
    let start = Instant::now();
    loop {
        match rustix::fs::flock(file, operation) {
            Ok(()) => return Ok(()),
            Err(Errno::WOULDBLOCK) if start.elapsed() < LOCK_PATIENCE => std::thread::sleep(PAUSE),
            Err(Errno::WOULDBLOCK) => return Err(busy(path)),
            Err(error) => return Err(failure(path, "lock", error)),
        }
    }
}

/// Makes the name of a new file durable. Without this a crash may lose the file and everything flushed to it.
fn sync_folder(path: &Path) -> Result<()> {
    let folder = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let opened = rustix::fs::open(folder, flags, Mode::empty());
    match opened.and_then(rustix::fs::fsync) {
        // Some file systems (over FUSE or a network) do not support it; their names are durable at once or never.
        Ok(()) | Err(Errno::INVAL | Errno::NOTSUP | Errno::NOSYS) => Ok(()),
        Err(error) => Err(failure(folder, "sync the folder", error)),
    }
}

/// The error of a failed system call on `path`, with the kind that tells the caller what to do.
fn failure(path: &Path, action: &str, errno: Errno) -> Error {
    let text = format!("{action} {}", path.display());
    let kind = match errno {
        Errno::NOENT | Errno::NXIO | Errno::NODEV => ErrorKind::NotFound,
        Errno::ISDIR | Errno::NOTDIR | Errno::LOOP | Errno::NAMETOOLONG | Errno::INVAL => {
            ErrorKind::InvalidArgument
        }
        Errno::BUSY | Errno::TXTBSY => ErrorKind::Busy,
        _ => return Error::io(text, errno.into()),
    };
    Error::new(kind, format!("{text}: {}", io::Error::from(errno)))
}
