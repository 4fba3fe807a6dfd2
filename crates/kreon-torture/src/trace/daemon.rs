//! `qemu-storage-daemon`: exports a file through FUSE and logs what is done to it.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const PROGRAM: &str = "qemu-storage-daemon";

/// How long the daemon may take to come up, or to go down.
const PATIENCE: Duration = Duration::from_secs(10);

/// Why there can be no trace on this machine; `None` if there can.
pub fn missing() -> Option<String> {
    if find(PROGRAM).is_none() {
        return Some(format!(
            "there is no {PROGRAM}; on Debian it is in the package qemu-system-common"
        ));
    }
    match Path::new("/dev/fuse").exists() {
        true => None,
        false => Some("there is no /dev/fuse".to_owned()),
    }
}

fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let mut candidates = std::env::split_paths(&path).map(|folder| folder.join(program));
    candidates.find(|candidate| candidate.is_file())
}

/// A running daemon. Ended, and its file taken down, when it is dropped.
pub struct Daemon {
    child: Child,
    /// The file that it exports.
    export: PathBuf,
    is_up: bool,
}

impl Daemon {
    /// Starts it in `folder` with the block nodes `nodes`, each as the option `--blockdev` takes it,
    /// and exports the last one, `len_bytes` long, as the file `export`.
    ///
    /// # Errors
    /// Why it does not come up.
    pub fn start(
        folder: &Path,
        nodes: &[&str],
        export: &str,
        len_bytes: u64,
    ) -> Result<Self, String> {
        let said = folder.join("daemon.txt");
        let path = folder.join(export);
        let io =
            |what: &str, error: std::io::Error| format!("{what} in {}: {error}", folder.display());
        File::create(&path).map_err(|error| io("making a file", error))?;
        let output = File::create(&said).map_err(|error| io("making a file", error))?;
        let errors = output
            .try_clone()
            .map_err(|error| io("making a file", error))?;
        // So that it ends with this process even if that is killed.
        let mut command = match find("setpriv") {
            Some(setpriv) => {
                let mut command = Command::new(setpriv);
                command.args(["--pdeathsig", "TERM", PROGRAM]);
                command
            }
            None => Command::new(PROGRAM),
        };
        for node in nodes {
            command.args(["--blockdev", node]);
        }
        let name = "export";
        command.arg("--export").arg(format!(
            "type=fuse,id={name},node-name={name},mountpoint={export},writable=on"
        ));
        let child = command
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(errors)
            .spawn()
            .map_err(|error| format!("starting {PROGRAM}: {error}"))?;
        let mut daemon = Self {
            child,
            export: path,
            is_up: true,
        };
        daemon.wait_until_up(len_bytes).map_err(|what| {
            let said = fs::read_to_string(&said).unwrap_or_default();
            format!("{PROGRAM}: {what}: {}", said.trim())
        })?;
        Ok(daemon)
    }

    /// The exported file.
    pub fn export(&self) -> &Path {
        &self.export
    }

    /// The empty file below becomes one of the right length.
    fn wait_until_up(&mut self, len_bytes: u64) -> Result<(), String> {
        let start = Instant::now();
        loop {
            if fs::metadata(&self.export).is_ok_and(|file| file.len() == len_bytes) {
                return Ok(());
            }
            if let Ok(Some(status)) = self.child.try_wait() {
                return Err(format!("it ended with {status}"));
            }
            if start.elapsed() > PATIENCE {
                return Err("its export does not appear".to_owned());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Ends it. Everything is in its files then.
    ///
    /// # Errors
    /// If it does not end by itself.
    pub fn stop(mut self) -> Result<(), String> {
        match self.end() {
            true => Ok(()),
            false => Err(format!("{PROGRAM} did not end when it was asked to")),
        }
    }

    /// Whether it ended by itself.
    fn end(&mut self) -> bool {
        self.is_up = false;
        // Only `kill` can send a signal other than SIGKILL without unsafe code.
        let asked = Command::new("kill")
            .arg(self.child.id().to_string())
            .status();
        let start = Instant::now();
        while asked.is_ok() && start.elapsed() < PATIENCE {
            if let Ok(Some(_)) = self.child.try_wait() {
                return true;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        // A failure shows in the mount that stays, which is taken down next.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = Command::new("fusermount3")
            .args(["-u", "-z"])
            .arg(&self.export)
            .status();
        false
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        if self.is_up {
            self.end();
        }
    }
}
