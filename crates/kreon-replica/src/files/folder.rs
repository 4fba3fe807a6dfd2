//! The folder that a group's files stand in.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kreon_base::{Error, ErrorKind, Result};
use kreon_device::{Device, FileDevice, FileOptions};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

/// A folder with files that are devices. What it does to names is durable after the next [`sync`](Self::sync).
pub trait Directory: Send + Sync {
    /// Names of everything in it.
    ///
    /// # Errors
    /// `Io`.
    fn names(&self) -> Result<Vec<String>>;

    /// Opens and locks a file.
    ///
    /// # Errors
    /// `NotFound`; `InvalidArgument`: it is not a file but a link, a folder or something else; `Busy`: it is open; `Io`.
    fn open(&self, name: &str) -> Result<Arc<dyn Device>>;

    /// Makes an empty file.
    ///
    /// # Errors
    /// `InvalidArgument`: there is one; `Io`.
    fn create(&self, name: &str) -> Result<()>;

    /// Gives an empty file the content of another one, with which it shares its blocks until they are written; `false`: the
    /// file system cannot.
    ///
    /// # Errors
    /// `Io`.
    fn clone_blocks(&self, from: &str, to: &str) -> Result<bool>;

    /// Gives a file another name, which nothing has.
    ///
    /// # Errors
    /// `Io`.
    fn rename(&self, from: &str, to: &str) -> Result<()>;

    /// Removes a file, if it is there.
    ///
    /// # Errors
    /// `Io`.
    fn remove(&self, name: &str) -> Result<()>;

    /// Makes durable which names there are.
    ///
    /// # Errors
    /// `Io`.
    fn sync(&self) -> Result<()>;

    /// Bytes that a file has space for.
    ///
    /// # Errors
    /// `NotFound`; `Io`.
    fn taken_bytes(&self, name: &str) -> Result<u64>;

    /// Free bytes of the file system; `None`: unknown.
    fn free_bytes(&self) -> Option<u64>;
}

/// A folder of the operating system.
#[derive(Clone, Debug)]
pub struct Folder {
    path: PathBuf,
    options: FileOptions,
}

impl Folder {
    /// Its files are opened with `options`, for writing.
    pub fn new(path: impl Into<PathBuf>, options: FileOptions) -> Self {
        let options = FileOptions {
            create: false,
            read_only: false,
            ..options
        };
        Self {
            path: path.into(),
            options,
        }
    }

    /// Where a file stands.
    pub fn path_of(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }
}

impl Directory for Folder {
    fn names(&self) -> Result<Vec<String>> {
        let said = |error| Error::io(format!("list {}", self.path.display()), error);
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.path).map_err(said)? {
            // A name that is no text is none of ours.
            names.extend(entry.map_err(said)?.file_name().into_string());
        }
        Ok(names)
    }

    fn open(&self, name: &str) -> Result<Arc<dyn Device>> {
        let path = self.path_of(name);
        check_is_file(&path)?;
        let (device, _) = FileDevice::open(path, &self.options)?;
        Ok(Arc::new(device))
    }

    fn create(&self, name: &str) -> Result<()> {
        let path = self.path_of(name);
        match File::create_new(&path) {
            Ok(_) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(Error::invalid(
                format!("{} is there already", path.display()),
            )),
            Err(error) => Err(Error::io(format!("create {}", path.display()), error)),
        }
    }

    fn clone_blocks(&self, from: &str, to: &str) -> Result<bool> {
        let open = |name: &str, access: OFlags| {
            let flags = access | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            rustix::fs::open(self.path_of(name), flags, Mode::empty())
        };
        let cloned = open(from, OFlags::RDONLY).and_then(|from| {
            let to = open(to, OFlags::WRONLY)?;
            rustix::fs::ioctl_ficlone(to, from)
        });
        match cloned {
            Ok(()) => Ok(true),
            Err(Errno::OPNOTSUPP | Errno::NOTTY | Errno::INVAL | Errno::XDEV | Errno::NOSYS) => {
                Ok(false)
            }
            Err(error) => Err(Error::io(format!("clone {from}"), error.into())),
        }
    }

    fn rename(&self, from: &str, to: &str) -> Result<()> {
        let renamed = fs::rename(self.path_of(from), self.path_of(to));
        renamed.map_err(|error| Error::io(format!("rename {from} to {to}"), error))
    }

    fn remove(&self, name: &str) -> Result<()> {
        match fs::remove_file(self.path_of(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(Error::io(format!("remove {name}"), error))
            }
            _ => Ok(()),
        }
    }

    fn sync(&self) -> Result<()> {
        let synced = File::open(&self.path).and_then(|folder| folder.sync_all());
        match synced {
            // Some file systems do not support it; their names are durable at once or never.
            Err(error)
                if error.kind() != io::ErrorKind::InvalidInput
                    && error.kind() != io::ErrorKind::Unsupported =>
            {
                Err(Error::io(format!("sync {}", self.path.display()), error))
            }
            _ => Ok(()),
        }
    }

    fn taken_bytes(&self, name: &str) -> Result<u64> {
        let about = check_is_file(&self.path_of(name))?;
        Ok(about.blocks().saturating_mul(512))
    }

    fn free_bytes(&self) -> Option<u64> {
        let about = rustix::fs::statvfs(&self.path).ok()?;
        Some(about.f_bavail.saturating_mul(about.f_frsize))
    }
}

/// Refuses what is not itself a file: behind a link there may be anything.
fn check_is_file(path: &Path) -> Result<fs::Metadata> {
    let about = fs::symlink_metadata(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => {
            Error::new(ErrorKind::NotFound, format!("no file {}", path.display()))
        }
        _ => Error::io(format!("examine {}", path.display()), error),
    })?;
    match about.is_file() {
        true => Ok(about),
        false => Err(Error::invalid(format!(
            "{} is not a file: it was left untouched",
            path.display()
        ))),
    }
}
