//! What stands where in the folder of a cluster on one machine.

use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};

use kreon::{Error, ErrorKind, Result};

use crate::cluster::page::STATUS_PAGE;
use crate::failure::Failure;

/// The folder of a cluster on one machine.
#[derive(Clone, Debug)]
pub struct Folder(PathBuf);

/// Nobody else starts or ends its processes meanwhile.
pub struct Turn(#[allow(dead_code, reason = "the lock goes with the file")] File);

impl Folder {
    /// The folder `path`; made if `is_made` says so.
    ///
    /// # Errors
    /// `Io`; `NotFound` if there is none, or no cluster in it.
    pub fn open(path: &Path, is_made: bool) -> Result<Self> {
        let io = |error| Error::io(format!("make the folder {}", path.display()), error);
        if is_made {
            fs::create_dir_all(path.join("run")).map_err(io)?;
        }
        // Processes work elsewhere; a path from here would mean another folder there.
        match fs::canonicalize(path) {
            Ok(path) if path.join("run").is_dir() => Ok(Self(path)),
            _ => {
                let message = format!("there is no cluster in {}", path.display());
                Err(Error::new(ErrorKind::NotFound, message))
            }
        }
    }

    /// What the cluster consists of.
    pub fn plan(&self) -> PathBuf {
        self.0.join("cluster.toml")
    }

    pub fn zookeeper(&self) -> PathBuf {
        self.0.join("zookeeper")
    }

    pub fn zookeeper_log(&self) -> PathBuf {
        self.0.join("zookeeper/server.log")
    }

    pub fn zookeeper_process(&self) -> PathBuf {
        self.0.join("run/zookeeper.pid")
    }

    /// Data of the server `number`, from 1 on.
    pub fn server(&self, number: usize) -> PathBuf {
        self.0.join(format!("server-{number}"))
    }

    pub fn server_log(&self, number: usize) -> PathBuf {
        self.0.join(format!("server-{number}.log"))
    }

    pub fn server_process(&self, number: usize) -> PathBuf {
        self.0.join(format!("run/server-{number}.pid"))
    }

    /// The right to start and end processes of this folder, until it is dropped.
    ///
    /// # Errors
    /// Busy if another command has it; `Io`.
    pub fn turn(&self) -> Result<Turn, Failure> {
        let path = self.0.join("run/lock");
        let io = |error| Error::io(format!("lock {}", path.display()), error);
        let file = File::options().create(true).append(true).open(&path);
        let file = file.map_err(io)?;
        match file.try_lock() {
            Ok(()) => Ok(Turn(file)),
            Err(TryLockError::Error(error)) => Err(io(error).into()),
            Err(TryLockError::WouldBlock) => {
                let message = format!("`up` or `down` is at work on {}", self.0.display());
                let busy = Failure::from(Error::new(ErrorKind::Busy, message));
                Err(busy.with_advice("wait until it has ended"))
            }
        }
    }
}

/// Where a server's status page is, as the server says in its log behind `from`; none if it does not say so yet.
pub fn status_page(log: &Path, from: u64) -> Option<String> {
    let text = fs::read(log).unwrap_or_default();
    let text = text.get(usize::try_from(from).ok()?..)?;
    let text = String::from_utf8_lossy(text);
    let mut lines = text.lines().rev();
    lines.find_map(|line| line.strip_prefix(STATUS_PAGE).map(str::to_owned))
}

/// The last line that a process wrote to its log.
pub fn last_line(log: &Path) -> String {
    let text = fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let last = text.lines().rev().find(|line| !line.trim().is_empty());
    last.unwrap_or("nothing").to_owned()
}
