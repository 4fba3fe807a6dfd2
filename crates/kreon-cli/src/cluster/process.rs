//! Processes that outlive who started them: known by a file, and told from others that got their number later.

use std::fs;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::{Duration, Instant};

use kreon::{Error, Result};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// A process, by a descriptor: signals reach it or nobody.
#[derive(Debug)]
pub struct Process {
    number: u32,
    descriptor: OwnedFd,
}

impl Process {
    /// Writes to `file` which process has the number `pid`. It runs, or nobody has waited for it yet.
    ///
    /// # Errors
    /// `Io`.
    pub fn record(file: &Path, pid: u32) -> Result<()> {
        let line = identity(pid)
            .map_err(|error| Error::io(format!("look at the process {pid}"), error))?;
        // By a name of its own: who reads the file sees a whole line.
        let fresh = file.with_extension("new");
        fs::write(&fresh, line)
            .and_then(|()| fs::rename(&fresh, file))
            .map_err(|error| Error::io(format!("write {}", file.display()), error))
    }

    /// The process that `file` names; none if there is no such file, or the process has ended.
    ///
    /// # Errors
    /// `Io`; `Corruption` if the file is none of [`record`](Self::record).
    pub fn recorded(file: &Path) -> Result<Option<Self>> {
        let line = match fs::read_to_string(file) {
            Ok(line) => line,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Error::io(format!("read {}", file.display()), error)),
        };
        let number = line.split(' ').next().and_then(|word| word.parse().ok());
        let wrong = || Error::corruption(format!("{} names no process", file.display()));
        let number: u32 = number.ok_or_else(wrong)?;
        let raw = i32::try_from(number).ok().and_then(Pid::from_raw);
        let descriptor = match pidfd_open(raw.ok_or_else(wrong)?, PidfdFlags::empty()) {
            Ok(descriptor) => descriptor,
            Err(Errno::SRCH | Errno::INVAL) => return Ok(None),
            Err(error) => {
                return Err(Error::io(
                    format!("look at the process {number}"),
                    error.into(),
                ));
            }
        };
        // After the descriptor is there: from now on the number cannot become another process unseen.
        let is_same = identity(number).is_ok_and(|now| now == line);
        let process = Self { number, descriptor };
        Ok((is_same && !process.has_ended()).then_some(process))
    }

    /// Its number.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Sends a signal; one that has ended gets none.
    ///
    /// # Errors
    /// `Io`.
    pub fn signal(&self, signal: Signal) -> Result<()> {
        match pidfd_send_signal(&self.descriptor, signal) {
            Ok(()) | Err(Errno::SRCH) => Ok(()),
            Err(error) => {
                let what = format!("signal the process {}", self.number);
                Err(Error::io(what, error.into()))
            }
        }
    }

    /// Whether it has ended.
    pub fn has_ended(&self) -> bool {
        self.ends_within(Duration::ZERO)
    }

    /// Waits for its end, for `limit` at most; whether it came.
    pub fn ends_within(&self, limit: Duration) -> bool {
        let begun = Instant::now();
        loop {
            let left = limit.saturating_sub(begun.elapsed());
            let time = Timespec::try_from(left).ok();
            let mut fds = [PollFd::new(&self.descriptor, PollFlags::IN)];
            match poll(&mut fds, time.as_ref()) {
                Ok(ready) => return ready > 0,
                Err(Errno::INTR) => {}
                Err(_) => return false,
            }
        }
    }
}

/// Number, boot of the machine, and time of the start: no two processes have all three. One line.
fn identity(pid: u32) -> std::io::Result<String> {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    // The name of the program stands in brackets and may hold anything; behind it the start is the 20th field.
    let fields = stat.rsplit_once(") ").map(|(_, fields)| fields);
    let start = fields.and_then(|fields| fields.split(' ').nth(19));
    let start = start.ok_or(std::io::ErrorKind::InvalidData)?;
    Ok(format!("{pid} {} {start}\n", boot.trim()))
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_recorded_process_is_found_until_it_ends() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("x.pid");
        assert!(Process::recorded(&file).unwrap().is_none());
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        Process::record(&file, child.id()).unwrap();
        let process = Process::recorded(&file).unwrap().unwrap();
        assert_eq!(process.number(), child.id());
        assert!(!process.has_ended());
        process.signal(Signal::TERM).unwrap();
        assert!(process.ends_within(Duration::from_secs(60)));
        // Nobody has waited for it: a number without a process behind it is none either.
        assert!(Process::recorded(&file).unwrap().is_none());
        child.wait().unwrap();
        assert!(Process::recorded(&file).unwrap().is_none());
        process.signal(Signal::KILL).unwrap();
    }

    #[test]
    fn another_process_with_the_same_number_is_not_the_recorded_one() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("x.pid");
        Process::record(&file, std::process::id()).unwrap();
        assert!(Process::recorded(&file).unwrap().is_some());
        let line = fs::read_to_string(&file).unwrap();
        for other in [line.replace('\n', "1\n"), line.replacen('-', "+", 1)] {
            fs::write(&file, other).unwrap();
            assert!(Process::recorded(&file).unwrap().is_none());
        }
        fs::write(&file, "no number").unwrap();
        let wrong = Process::recorded(&file).unwrap_err();
        assert_eq!(wrong.kind(), kreon::ErrorKind::Corruption);
    }
}
