//! `kreon cluster key`, and the reading of key files.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use clap::Args;
use kreon::{Error, Result};

use crate::failure::Failure;

/// As many as the code that proves the key has.
const KEY_BYTES: usize = 32;

/// A key file may hold so much: more is none.
const FILE_BYTES_MAX: u64 = 1024;

/// Make a key file, which every server and client of the cluster needs to have
///
/// 32 random bytes that only you can read. Copy the file to each machine by a way that nobody listens to.
#[derive(Debug, Args)]
pub struct MakeKey {
    /// The file: it must not be there
    file: PathBuf,
}

impl MakeKey {
    pub fn run(&self) -> Result<(), Failure> {
        let path = self.file.display();
        let io = |what: &str, error| Error::io(format!("{what} {path}"), error);
        let mut key = [0; KEY_BYTES];
        let random = Path::new("/dev/urandom");
        File::open(random)
            .and_then(|mut random| random.read_exact(&mut key))
            .map_err(|error| Error::io("read /dev/urandom", error))?;
        let made = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&self.file);
        let mut file = match made {
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
                return Err(Failure::usage(format!(
                    "{path} is there: a key that servers may use is not overwritten"
                )));
            }
            made => made.map_err(|error| io("create", error))?,
        };
        let written = file.write_all(&key).and_then(|()| file.sync_all());
        Ok(written.map_err(|error| io("write", error))?)
    }
}

/// The bytes of a key file that only its owner, and perhaps its group, can read.
///
/// # Errors
/// `Io`; `InvalidArgument` if others may read or change it, or it is too long for a key.
pub fn read(path: &Path) -> Result<Vec<u8>> {
    let failed = |error| Error::io(format!("read the key {}", path.display()), error);
    let file = File::open(path).map_err(failed)?;
    let mode = file.metadata().map_err(failed)?.mode();
    if mode & 0o037 != 0 {
        return Err(Error::invalid(format!(
            "the key {} is open to others (mode {:03o}): chmod 600 {}",
            path.display(),
            mode & 0o777,
            path.display()
        )));
    }
    let mut key = Vec::new();
    file.take(FILE_BYTES_MAX + 1)
        .read_to_end(&mut key)
        .map_err(failed)?;
    if key.len() as u64 > FILE_BYTES_MAX {
        let message = format!(
            "the key {} has more than {FILE_BYTES_MAX} bytes",
            path.display()
        );
        return Err(Error::invalid(message));
    }
    Ok(key)
}
