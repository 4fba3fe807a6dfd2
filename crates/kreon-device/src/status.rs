//! A socket on which the process that has a volume open tells others how it is.
//!
//! On Linux it has a name outside the file system, from the numbers of the file: there is nothing to clean up after a
//! process that was killed, no folder is written to, and a block device can have one. Such names have no permissions, so
//! each side looks at who is at the other end. It is found within one network namespace. Other systems have none.

use std::io::{self, Read as _};
use std::net::Shutdown;
use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::time::Duration;

use kreon_base::{Error, ErrorKind, Result};
use rustix::fs::{FileType, Stat};
use rustix::io::Errno;

use crate::system;

/// How long an answer is waited for.
const ANSWER_PATIENCE: Duration = Duration::from_secs(5);

/// No answer is longer, in bytes.
const ANSWER_BYTES_MAX: u64 = 256 << 20;

const ROOT: u32 = 0;

/// Listens for those who ask.
#[derive(Debug)]
pub struct StatusSocket {
    listener: UnixListener,
}

impl StatusSocket {
    /// Of the open volume `file`.
    ///
    /// # Errors
    /// `Io`: the name is taken, or the system has no such names.
    pub(crate) fn bind(file: impl AsFd) -> Result<Self> {
        let failed = |error: io::Error| Error::io("open a socket for the status", error);
        let about = rustix::fs::fstat(file).map_err(|error| failed(error.into()))?;
        let listener = system::listen(&name_of(&about)).map_err(failed)?;
        Ok(Self { listener })
    }

    /// Waits for the next one who asks; `None` if that user may not: only the user of this process and root may.
    ///
    /// # Errors
    /// `Io`; always after [`shut`](Self::shut).
    pub fn accept(&self) -> Result<Option<UnixStream>> {
        let failed = |error| Error::io("wait for who asks for the status", error);
        let (stream, _) = self.listener.accept().map_err(failed)?;
        let own = rustix::process::geteuid().as_raw();
        let is_known =
            system::peer_user(stream.as_fd()).is_ok_and(|user| user == own || user == ROOT);
        Ok(is_known.then_some(stream))
    }

    /// Ends a call of [`accept`](Self::accept), and all later ones.
    pub fn shut(&self) {
        // It fails where it was done before.
        let _ = rustix::net::shutdown(&self.listener, rustix::net::Shutdown::Both);
    }
}

/// What the process that has the volume at `path` open says of it; `None` if none does, or tells.
///
/// # Errors
/// `NotFound`; `Io` if the answer does not come within five seconds.
pub fn ask_status(path: &Path) -> Result<Option<Vec<u8>>> {
    let text = || format!("ask for the status of {}", path.display());
    let failed = |error: io::Error| Error::io(text(), error);
    let about = match rustix::fs::stat(path) {
        Err(Errno::NOENT) => return Err(Error::new(ErrorKind::NotFound, text())),
        about => about.map_err(|error| failed(error.into()))?,
    };
    let mut stream = match system::connect(&name_of(&about)) {
        // Many ask, and the process answers none.
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Err(failed(error)),
        Err(_) => return Ok(None),
        Ok(stream) => stream,
    };
    // Anybody could have taken the name.
    let own = rustix::process::geteuid().as_raw();
    let user = system::peer_user(stream.as_fd()).map_err(failed)?;
    if ![own, about.st_uid, ROOT].contains(&user) {
        return Ok(None);
    }
    stream
        .set_read_timeout(Some(ANSWER_PATIENCE))
        .map_err(failed)?;
    let mut answer = Vec::new();
    let read = (&mut stream)
        .take(ANSWER_BYTES_MAX)
        .read_to_end(&mut answer);
    match read {
        // It was closed, or killed, before it accepted.
        Err(error) if error.kind() == io::ErrorKind::ConnectionReset => return Ok(None),
        read => read.map_err(failed)?,
    };
    let _ = stream.shutdown(Shutdown::Both);
    // A process that is being closed, or whose user may not tell this one, says nothing.
    Ok((!answer.is_empty()).then_some(answer))
}

/// Links and paths to one file have the same.
fn name_of(about: &Stat) -> String {
    match FileType::from_raw_mode(about.st_mode) {
        FileType::BlockDevice => format!("kreon-status-device-{:x}", about.st_rdev),
        _ => format!("kreon-status-{:x}-{:x}", about.st_dev, about.st_ino),
    }
}
