//! A server for the time of some tests.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result};

/// A running `kreon serve`, with a new store; ends with this value.
pub struct Served {
    child: Child,
    pub port: u16,
}

impl Served {
    /// Starts one on any free port, with a password if there is one.
    pub fn start(kreon: &Path, store: &Path, password: Option<&str>) -> Result<Self> {
        if store.exists() {
            fs::remove_file(store).context("cannot remove the store of the last run")?;
        }
        let mut command = Command::new(kreon);
        command.arg("serve").arg(store);
        command.args(["--listen", "127.0.0.1:0", "--memory", "256MiB", "--debug"]);
        if let Some(password) = password {
            let file = store.with_extension("password");
            fs::write(&file, password).context("cannot write the password")?;
            command.arg("--auth-file").arg(file);
        }
        let child = command.stdout(Stdio::piped()).spawn();
        let mut child = child.with_context(|| format!("cannot start {}", kreon.display()))?;
        let out = child.stdout.take();
        // Owns the child from here on, so that an error ends it.
        let mut served = Self { child, port: 0 };
        let mut line = String::new();
        BufReader::new(out.context("no output of the server")?).read_line(&mut line)?;
        let port = line
            .trim()
            .rsplit(':')
            .next()
            .and_then(|port| port.parse().ok());
        served.port = port.with_context(|| format!("the server said no port: {line}"))?;
        Ok(served)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
