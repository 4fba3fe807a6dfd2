//! The files of a server in a folder, each with its checksum verified.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use kreon_base::{Error, ErrorKind, Result};
use sha2::{Digest, Sha256};

use crate::fetch;
use crate::pinned::{JARS, Jar, VERSION};

/// What starts servers: a Java and the files.
#[derive(Clone, Debug)]
pub struct Jars {
    java: PathBuf,
    folder: PathBuf,
}

impl Jars {
    /// The files in `cache`, where [`fetch`](Self::fetch) put them.
    ///
    /// # Errors
    /// `NotFound` without a Java or without the files; `Corruption` if one is not what it should be; `Io`.
    pub fn find(cache: &Path) -> Result<Self> {
        let java = java()?;
        let folder = cache.join(VERSION);
        verify(&folder)?;
        Ok(Self { java, folder })
    }

    /// The same; has Maven fetch them if they are not there, which may take `limit`.
    ///
    /// # Errors
    /// `NotFound` also without Maven, and if it could not get them in time.
    pub fn fetch(cache: &Path, limit: Duration) -> Result<Self> {
        match Self::find(cache) {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            found => return found,
        }
        java()?;
        fetch::fetch(cache, limit, verify)?;
        Self::find(cache)
    }

    /// The cache of a checkout of this repository: `zookeeper` in cargo's folder for builds.
    pub fn cache() -> PathBuf {
        let target = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let target = target.unwrap_or_else(|| here.join("../../target"));
        target.join("zookeeper")
    }

    pub(crate) fn java(&self) -> &Path {
        &self.java
    }

    /// All of them, as Java wants its class path.
    pub(crate) fn class_path(&self) -> String {
        let paths = JARS.iter().map(|jar| self.folder.join(jar.file()));
        let paths: Vec<_> = paths.map(|path| path.display().to_string()).collect();
        paths.join(":")
    }
}

/// The Java of `JAVA_HOME`, or of the path.
fn java() -> Result<PathBuf> {
    let home = std::env::var_os("JAVA_HOME").map(|home| Path::new(&home).join("bin/java"));
    let java = home.unwrap_or_else(|| "java".into());
    let mut version = Command::new(&java);
    version.arg("-version").stdin(Stdio::null());
    let status = version.stdout(Stdio::null()).stderr(Stdio::null()).status();
    if status.is_ok_and(|status| status.success()) {
        return Ok(java);
    }
    let message = format!("no Java: cannot run {} -version", java.display());
    Err(Error::new(ErrorKind::NotFound, message))
}

fn verify(folder: &Path) -> Result<()> {
    JARS.iter().try_for_each(|jar| verify_one(folder, jar))
}

fn verify_one(folder: &Path, jar: &Jar) -> Result<()> {
    let path = folder.join(jar.file());
    let bytes = match fs::read(&path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let message = format!("no {}: cargo xtask zookeeper fetches it", path.display());
            return Err(Error::new(ErrorKind::NotFound, message));
        }
        Err(error) => return Err(Error::io(format!("read {}", path.display()), error)),
    };
    let mut found = String::new();
    for byte in Sha256::digest(&bytes) {
        let _ = write!(found, "{byte:02x}");
    }
    if found == jar.sha256 {
        return Ok(());
    }
    let message = format!(
        "{}: its SHA-256 is {found}, not {}",
        path.display(),
        jar.sha256
    );
    Err(Error::new(ErrorKind::Corruption, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_missing_or_another_one_is_no_jar() {
        let folder = tempfile::tempdir().unwrap();
        let missing = verify(folder.path()).unwrap_err();
        assert_eq!(missing.kind(), ErrorKind::NotFound);
        for jar in &JARS {
            fs::write(folder.path().join(jar.file()), b"not a jar").unwrap();
        }
        let other = verify(folder.path()).unwrap_err();
        assert_eq!(other.kind(), ErrorKind::Corruption);
        assert!(other.to_string().contains(JARS[0].sha256), "{other}");
    }
}
