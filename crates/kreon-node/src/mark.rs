//! The mark of a server in its folder: which server of which cluster it belongs to.

use std::fs::{File, TryLockError};
use std::io::{ErrorKind as Io, Write as _};
use std::path::Path;

use kreon_base::{Error, ErrorKind, Result};
use kreon_wire::ServerId;

/// Name of the file. An embedded store refuses to open a file beside it.
pub const MARK: &str = "CLUSTER";

/// A folder that belongs to a server, and is locked while this exists.
pub struct Mark {
    _file: File,
}

impl Mark {
    /// Takes a folder, which is made and marked if need be.
    ///
    /// # Errors
    /// `InvalidArgument`: it belongs to another server or cluster, or an unmarked folder holds something else; `Busy`:
    /// another process has it; `Io`.
    pub fn take(folder: &Path, cluster: &str, server: ServerId) -> Result<Self> {
        let path = folder.join(MARK);
        let said = |action: &str, error| Error::io(format!("{action} {}", path.display()), error);
        std::fs::create_dir_all(folder).map_err(|e| said("make the folder of", e))?;
        let wanted = text(cluster, server);
        match std::fs::read_to_string(&path) {
            Ok(found) if found == wanted => {}
            Ok(found) => {
                let found = found.replace('\n', ", ");
                let text = format!(
                    "{} says {found:?}: the folder belongs to another server",
                    path.display()
                );
                return Err(Error::invalid(text));
            }
            Err(error) if error.kind() == Io::NotFound => {
                refuse_foreign(folder)?;
                write(folder, &path, &wanted).map_err(|e| said("write", e))?;
            }
            Err(error) => return Err(said("read", error)),
        }
        let file = File::open(&path).map_err(|e| said("open", e))?;
        match file.try_lock() {
            Ok(()) => Ok(Self { _file: file }),
            Err(TryLockError::WouldBlock) => {
                let text = format!("{}: another process runs this server", folder.display());
                Err(Error::new(ErrorKind::Busy, text))
            }
            Err(TryLockError::Error(error)) => Err(said("lock", error)),
        }
    }
}

fn text(cluster: &str, server: ServerId) -> String {
    format!("cluster {cluster}\nserver {}\n", server.0)
}

/// A folder with other things in it was probably not meant.
fn refuse_foreign(folder: &Path) -> Result<()> {
    let said = |e| Error::io(format!("list {}", folder.display()), e);
    for entry in std::fs::read_dir(folder).map_err(said)? {
        let name = entry.map_err(said)?.file_name();
        // The mark that was being written when a start ended.
        if name != "CLUSTER.new" && name != "lost+found" {
            let text = format!(
                "{} is not empty and belongs to no server of a cluster",
                folder.display()
            );
            return Err(Error::invalid(text));
        }
    }
    Ok(())
}

fn write(folder: &Path, path: &Path, text: &str) -> std::io::Result<()> {
    let new = folder.join("CLUSTER.new");
    let mut file = File::create(&new)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    std::fs::rename(&new, path)?;
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_belongs_to_one_server_of_one_cluster_in_one_process() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data");
        let held = Mark::take(&path, "prod", ServerId(3)).unwrap();
        let again = Mark::take(&path, "prod", ServerId(3));
        assert_eq!(again.err().unwrap().kind(), ErrorKind::Busy);
        drop(held);
        Mark::take(&path, "prod", ServerId(3)).unwrap();
        for (cluster, server) in [("prod", 2), ("test", 3)] {
            let other = Mark::take(&path, cluster, ServerId(server));
            assert_eq!(other.err().unwrap().kind(), ErrorKind::InvalidArgument);
        }
    }

    #[test]
    fn a_folder_with_other_files_is_not_taken() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("thesis.tex"), "text").unwrap();
        let taken = Mark::take(folder.path(), "prod", ServerId(1));
        assert_eq!(taken.err().unwrap().kind(), ErrorKind::InvalidArgument);
        assert!(!folder.path().join(MARK).exists());
    }
}
