//! Backups of an open store into a folder, and stores made of them.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kreon_device::{Device, Facility, FileDevice, FileOptions};
use kreon_engine::{Access, BackupInfo, BackupOptions, BackupReport, Progress, Restored, Shelf};

use crate::{Error, ErrorKind, Result, Store};

/// A folder with backups of one store.
///
/// Each backup is a whole state of the store at one moment, with everything that was acknowledged before it began. Backups
/// share what they have in common: one after the first copies only pages that are new and what the log has grown by, and
/// reads little more. The files of the folder are no store; [`restore`](Self::restore) makes one.
///
/// ```
/// # fn main() -> kreon::Result<()> {
/// # let folder = tempfile::tempdir().unwrap();
/// # let (path, backups, again) = (folder.path().join("a"), folder.path().join("backups"), folder.path().join("b"));
/// let store = kreon::Store::open(&path)?;
/// let cities = store.region("cities")?;
/// cities.put("gr/heraklion", "140730")?;
/// let backup = kreon::Backup::at(&backups);
/// backup.make(&store)?;
/// cities.put("gr/chania", "53910")?;
/// let report = backup.make(&store)?;
/// assert!(report.copied_bytes < report.bytes);
/// backup.restore(&again)?;
/// let restored = kreon::Store::open(&again)?;
/// assert_eq!(restored.region("cities")?.get("gr/chania")?.as_deref(), Some(b"53910".as_slice()));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use = "nothing is done until `make`, `restore` or `verify`"]
pub struct Backup {
    folder: PathBuf,
    options: BackupOptions,
    number: Option<u32>,
}

impl Backup {
    /// The backups in `folder`.
    pub fn at(folder: impl AsRef<Path>) -> Self {
        Self {
            folder: folder.as_ref().to_owned(),
            options: BackupOptions::default(),
            number: None,
        }
    }

    /// Most bytes that [`make`](Self::make) reads and copies in a second, on average. Default: no limit.
    pub fn bytes_per_second(mut self, bytes: u64) -> Self {
        self.options.bytes_per_second = Some(bytes);
        self
    }

    /// How many backups stay in the folder when [`make`](Self::make) ends, the new one included. At least 1, which is the
    /// default. What only older ones need is given back to the file system.
    pub fn keep(mut self, backups: u32) -> Self {
        self.options.keep = backups;
        self
    }

    /// The backup that [`restore`](Self::restore) and [`verify`](Self::verify) take. Default: the newest.
    pub fn number(mut self, number: u32) -> Self {
        self.number = Some(number);
        self
    }

    /// Makes a backup of an open store, which goes on to read and write. See [`make_with`](Self::make_with).
    ///
    /// # Errors
    /// As [`make_with`](Self::make_with).
    pub fn make(&self, store: &Store) -> Result<BackupReport> {
        self.make_with(store, |_| Ok(()))
    }

    /// Makes a backup, and reports to `progress` from this thread, in bytes; an error of it ends the backup and is
    /// returned. Everything that was acknowledged before the call is made durable first and is in the backup. Every page and
    /// log record that is copied is verified. The folder is made if there is none.
    ///
    /// What the state needs stays on the volume until the backup ends, so that a full volume gets no space from deletions
    /// meanwhile. It takes 1 MiB of buffers, a segment, and some 50 bytes of memory for each page of trees.
    ///
    /// # Errors
    /// `Corruption`: a page or record of the store does not verify, and the message names it. `InvalidArgument`: the folder
    /// has backups of another store. `Busy`: another backup is being made there. `OutOfSpace`, `Io`, `Closed`, `Poisoned`.
    /// The folder then has the backups that it had; the next run removes what was begun. Only if older backups cannot be
    /// removed, by `Io` or as one of them is being read (`Busy`), the new one is there all the same: [`list`](Self::list) says.
    pub fn make_with(
        &self,
        store: &Store,
        mut progress: impl FnMut(Progress) -> Result<()>,
    ) -> Result<BackupReport> {
        fs::create_dir_all(&self.folder).map_err(|error| self.failed("create", error))?;
        store
            .engine
            .backup(&self.shelf(), &self.options, &mut progress)
    }

    /// The backups in the folder, oldest first.
    ///
    /// # Errors
    /// `NotFound` without a finished backup; `Corruption` of a manifest; `Io`.
    pub fn list(&self) -> Result<Vec<BackupInfo>> {
        kreon_engine::list_backups(&self.shelf()).map_err(|error| self.within(&error))
    }

    /// Makes a new store of a backup. See [`restore_with`](Self::restore_with).
    ///
    /// # Errors
    /// As [`restore_with`](Self::restore_with).
    pub fn restore(&self, path: impl AsRef<Path>) -> Result<Restored> {
        self.restore_with(path, |_| Ok(()))
    }

    /// Makes a new store at `path`, where nothing may be yet, and reports to `progress`, whose error ends it. Every byte is
    /// verified. The file has its name only when it is whole and durable; until then it is `path` with `.restoring`.
    ///
    /// The new store has the identity of the old one: backups of both go into one folder only by mistake.
    ///
    /// # Errors
    /// `NotFound`: no such backup. `InvalidArgument`: something is at `path`. `Corruption`: the backup is damaged, and the
    /// message names where. `OutOfSpace`, `Io`. The unfinished file is removed.
    pub fn restore_with(
        &self,
        path: impl AsRef<Path>,
        mut progress: impl FnMut(Progress) -> Result<()>,
    ) -> Result<Restored> {
        let path = path.as_ref();
        if fs::symlink_metadata(path).is_ok() {
            return Err(Error::invalid(format!(
                "{} exists already; a backup is restored into a new store",
                path.display()
            )));
        }
        let mut unfinished = path.as_os_str().to_owned();
        unfinished.push(".restoring");
        let unfinished = PathBuf::from(unfinished);
        // Of a restore that was killed.
        match fs::remove_file(&unfinished) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(Error::io(format!("remove {}", unfinished.display()), error));
            }
            _ => {}
        }
        let outcome = self.restore_into(&unfinished, &mut progress);
        let outcome = outcome.and_then(|restored| {
            rename(&unfinished, path)?;
            Ok(restored)
        });
        if outcome.is_err() {
            // The first error is the one to return.
            let _ = fs::remove_file(&unfinished);
        }
        outcome.map_err(|error| self.within(&error))
    }

    fn restore_into(
        &self,
        path: &Path,
        progress: &mut impl FnMut(Progress) -> Result<()>,
    ) -> Result<Restored> {
        let shelf = self.shelf();
        // Before anything is made there.
        kreon_engine::list_backups(&shelf)?;
        let options = FileOptions {
            create: true,
            ..FileOptions::default()
        };
        let device: Arc<dyn Device> = Arc::new(FileDevice::open(path, &options)?.0);
        kreon_engine::restore_backup(&shelf, self.number, &device, progress)
    }

    /// Reads a backup and checks every byte of it. See [`verify_with`](Self::verify_with).
    ///
    /// # Errors
    /// As [`verify_with`](Self::verify_with).
    pub fn verify(&self) -> Result<Restored> {
        self.verify_with(|_| Ok(()))
    }

    /// Reads a backup and checks every byte of it, and reports to `progress`, whose error ends it.
    ///
    /// # Errors
    /// `NotFound`: no such backup. `Corruption` names the first part that does not verify. `Io`.
    pub fn verify_with(
        &self,
        mut progress: impl FnMut(Progress) -> Result<()>,
    ) -> Result<Restored> {
        kreon_engine::check_backup(&self.shelf(), self.number, &mut progress)
            .map_err(|error| self.within(&error))
    }

    fn shelf(&self) -> Folder {
        Folder(self.folder.clone())
    }

    fn within(&self, error: &Error) -> Error {
        error.within(self.folder.display())
    }

    fn failed(&self, action: &str, error: io::Error) -> Error {
        Error::io(format!("{action} {}", self.folder.display()), error)
    }
}

/// A folder of files.
struct Folder(PathBuf);

impl Shelf for Folder {
    fn names(&self) -> Result<Vec<String>> {
        let failed = |error: io::Error| match error.kind() {
            io::ErrorKind::NotFound => Error::new(ErrorKind::NotFound, "there is no such folder"),
            _ => Error::io(format!("list {}", self.0.display()), error),
        };
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.0).map_err(failed)? {
            // Ours are plain.
            if let Ok(name) = entry.map_err(failed)?.file_name().into_string() {
                names.push(name);
            }
        }
        Ok(names)
    }

    fn open(&self, name: &str, access: Access) -> Result<Arc<dyn Device>> {
        let options = FileOptions {
            create: access == Access::Write,
            read_only: access == Access::Read,
            ring: Facility::Off,
            ..FileOptions::default()
        };
        Ok(Arc::new(FileDevice::open(self.0.join(name), &options)?.0))
    }

    fn rename(&self, from: &str, to: &str) -> Result<()> {
        rename(&self.0.join(from), &self.0.join(to))
    }

    fn remove(&self, name: &str) -> Result<()> {
        let path = self.0.join(name);
        fs::remove_file(&path)
            .and_then(|()| sync_folder_of(&path))
            .map_err(|error| Error::io(format!("remove {}", path.display()), error))
    }
}

fn rename(from: &Path, to: &Path) -> Result<()> {
    fs::rename(from, to)
        .and_then(|()| sync_folder_of(to))
        .map_err(|error| Error::io(format!("rename {}", from.display()), error))
}

/// Makes names durable.
fn sync_folder_of(path: &Path) -> io::Result<()> {
    let folder = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    match fs::File::open(folder)?.sync_all() {
        // Some file systems do not support it; their names are durable at once or never.
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::Unsupported => Ok(()),
        outcome => outcome,
    }
}
