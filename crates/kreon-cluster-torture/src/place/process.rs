//! A server as a process.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use rustix::process::{Pid, Signal, kill_process};

/// A server. Its process ends with this.
pub struct Process {
    /// Program and arguments.
    words: Vec<String>,
    log: PathBuf,
    child: Option<Child>,
    is_frozen: bool,
}

impl Process {
    /// A server that is started by `words` and adds what it says to `log`. It does not run yet.
    pub fn new(words: Vec<String>, log: &Path) -> Self {
        Self {
            words,
            log: log.to_owned(),
            child: None,
            is_frozen: false,
        }
    }

    /// Starts it, with further arguments of this start.
    ///
    /// # Errors
    /// What the system says.
    pub fn start(&mut self, more: &[String]) -> Result<u32, String> {
        self.kill()?;
        let said = |error: std::io::Error| format!("{}: {error}", self.words.join(" "));
        let [program, arguments @ ..] = self.words.as_slice() else {
            return Err("no program".into());
        };
        let log = File::options().create(true).append(true).open(&self.log);
        let log = log.map_err(said)?;
        let mut command = Command::new(program);
        command.args(arguments).args(more).stdin(Stdio::null());
        command.stdout(log.try_clone().map_err(said)?).stderr(log);
        let child = command.spawn().map_err(said)?;
        let process = child.id();
        self.child = Some(child);
        Ok(process)
    }

    /// Whether it runs, frozen or not, as far as this end knows.
    pub fn is_started(&self) -> bool {
        self.child.is_some()
    }

    /// Bytes of memory that it has, if it runs.
    pub fn resident_bytes(&self) -> Option<u64> {
        let child = self.child.as_ref()?;
        let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).ok()?;
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("VmRSS:"))?;
        let kib: u64 = line.trim().strip_suffix(" kB")?.trim().parse().ok()?;
        Some(kib << 10)
    }

    /// How it ended, if it did by itself, and what it said last.
    pub fn ended(&mut self) -> Option<(ExitStatus, String)> {
        let status = self.child.as_mut()?.try_wait().ok()??;
        let log = std::fs::read(&self.log).unwrap_or_default();
        let tail = &log[log.len().saturating_sub(2000)..];
        Some((status, String::from_utf8_lossy(tail).into_owned()))
    }

    /// Ends it as `kill -9` does.
    ///
    /// # Errors
    /// What the system says.
    pub fn kill(&mut self) -> Result<(), String> {
        self.is_frozen = false;
        let Some(mut child) = self.child.take() else {
            return Ok(());
        };
        child.kill().map_err(|error| error.to_string())?;
        child.wait().map_err(|error| error.to_string()).map(drop)
    }

    /// SIGSTOP.
    ///
    /// # Errors
    /// What the system says.
    pub fn freeze(&mut self) -> Result<(), String> {
        self.signal(Signal::STOP)?;
        self.is_frozen = true;
        Ok(())
    }

    /// SIGCONT, if it is frozen.
    ///
    /// # Errors
    /// What the system says.
    pub fn thaw(&mut self) -> Result<(), String> {
        if std::mem::take(&mut self.is_frozen) {
            self.signal(Signal::CONT)?;
        }
        Ok(())
    }

    fn signal(&self, signal: Signal) -> Result<(), String> {
        let child = self.child.as_ref();
        let number = child.and_then(|child| i32::try_from(child.id()).ok());
        let process = number.and_then(Pid::from_raw).ok_or("it does not run")?;
        kill_process(process, signal).map_err(|error| error.to_string())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.kill();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_process_is_told_with_its_last_words() {
        let place = tempfile::tempdir().unwrap();
        let words = ["sh", "-c", "echo alas >&2; exit 3"];
        let words = words.iter().map(|word| (*word).to_owned()).collect();
        let mut process = Process::new(words, &place.path().join("log"));
        assert!(process.ended().is_none());
        process.start(&[]).unwrap();
        let (status, said) = loop {
            match process.ended() {
                Some(ended) => break ended,
                None => std::thread::sleep(std::time::Duration::from_millis(5)),
            }
        };
        assert_eq!((status.code(), said.trim()), (Some(3), "alas"));
    }
}
