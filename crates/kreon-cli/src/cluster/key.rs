//! `kreon cluster key`, and the reading of key files.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use clap::Args;
use kreon::{Error, Result};
use kreon_client::Key;

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

/// The key in a file.
///
/// # Errors
/// As [`read`], and `InvalidArgument` if it is too short.
pub fn key(path: &Path) -> Result<Key> {
    Key::new(&read(path)?).map_err(|error| error.within(path.display()))
}

/// The bytes of a key file that only its owner, and perhaps its group, can read.
///
/// # Errors
/// `Io`; `InvalidArgument` if others may read or change it, or it is too long for a key.
fn read(path: &Path) -> Result<Vec<u8>> {
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

#[cfg(test)]
mod tests {
    use std::fs::{Permissions, set_permissions};
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_key_is_made_once_for_its_owner_only_and_read_back() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("key");
        let make = MakeKey { file: file.clone() };
        make.run().unwrap();
        let first = read(&file).unwrap();
        assert_eq!(first.len(), KEY_BYTES);
        assert_eq!(file.metadata().unwrap().mode() & 0o777, 0o600);
        key(&file).unwrap();
        assert_eq!(make.run().unwrap_err().exit_code(), 2);
        assert_eq!(read(&file).unwrap(), first);
    }

    #[test]
    fn a_key_that_others_can_read_is_refused_with_what_to_do() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("key");
        MakeKey { file: file.clone() }.run().unwrap();
        for (mode, is_read) in [(0o640, true), (0o400, true), (0o644, false), (0o660, false)] {
            set_permissions(&file, Permissions::from_mode(mode)).unwrap();
            let told = read(&file).map_err(|error| error.to_string());
            assert_eq!(told.is_ok(), is_read, "{mode:o}");
            assert!(told.is_ok() || told.unwrap_err().contains("chmod 600"));
        }
    }

    #[test]
    fn what_is_too_short_or_too_long_is_no_key() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("key");
        for length in [0, 15, 1025, 5000] {
            std::fs::write(&file, vec![1; length]).unwrap();
            set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
            let error = key(&file).unwrap_err();
            assert_eq!(error.kind(), kreon::ErrorKind::InvalidArgument, "{length}");
        }
    }
}
