//! One server: a process.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use kreon_base::{Error, ErrorKind, Result};
use rustix::process::{Pid, Signal, kill_process};

use crate::ask::{self, Mode};
use crate::configuration::{Ports, Settings, text};
use crate::jars::Jars;

/// A server. Its process ends with this.
pub struct Server {
    jars: Jars,
    settings: Settings,
    folder: PathBuf,
    /// Which of its ensemble it is, from 0.
    own: usize,
    address: SocketAddr,
    /// None: it was killed.
    child: Option<Child>,
}

impl Server {
    /// Starts the server `own` of those with the ports `all`, with its data in `folder`, and does not wait until it serves.
    pub(crate) fn start(
        jars: &Jars,
        settings: &Settings,
        folder: &Path,
        own: usize,
        all: &[Ports],
    ) -> Result<Self> {
        write(settings, folder, own, all)?;
        let mut server = Self {
            jars: jars.clone(),
            settings: settings.clone(),
            folder: folder.to_owned(),
            own,
            address: all[own].client_address(settings.host(own)),
            child: None,
        };
        server.restart()?;
        Ok(server)
    }

    /// Starts it again with its data; first kills it if it runs.
    ///
    /// # Errors
    /// `Io`.
    pub fn restart(&mut self) -> Result<()> {
        self.kill()?;
        let mut java = command(&self.jars, &self.settings, &self.folder, self.own)?;
        let io = |error| Error::io(format!("start {}", self.jars.java().display()), error);
        self.child = Some(java.spawn().map_err(io)?);
        Ok(())
    }

    /// Where clients connect.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// How it serves; none: it does not.
    pub fn mode(&self) -> Option<Mode> {
        self.child.as_ref().and_then(|_| ask::mode(self.address))
    }

    /// Waits until it serves, alone or as one of an ensemble.
    ///
    /// # Errors
    /// `Io` if it ended, with the last line of its log; `Busy` if it does not serve within `limit`.
    pub fn wait_until_serves(&mut self, limit: Duration) -> Result<Mode> {
        let begun = Instant::now();
        loop {
            if let Some(mode) = self.mode() {
                return Ok(mode);
            }
            if let Some(status) = self.ended()? {
                let log = fs::read_to_string(self.folder.join("server.log")).unwrap_or_default();
                let last = log.lines().last().unwrap_or("nothing");
                let message = format!("ZooKeeper ended with {status} and said: {last}");
                return Err(Error::new(ErrorKind::Io, message));
            }
            if begun.elapsed() > limit {
                let message = format!("ZooKeeper at {} does not serve yet", self.address);
                return Err(Error::new(ErrorKind::Busy, message));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Whether it was started and not killed since.
    pub fn is_started(&self) -> bool {
        self.child.is_some()
    }

    /// How its process ended, if it did by itself.
    ///
    /// # Errors
    /// `Io`.
    pub fn ended(&mut self) -> Result<Option<ExitStatus>> {
        let Some(child) = &mut self.child else {
            return Ok(None);
        };
        child
            .try_wait()
            .map_err(|error| Error::io("wait for ZooKeeper", error))
    }

    /// Kills it, as `kill -9` does.
    ///
    /// # Errors
    /// `Io`.
    pub fn kill(&mut self) -> Result<()> {
        let Some(mut child) = self.child.take() else {
            return Ok(());
        };
        let io = |error| Error::io("kill ZooKeeper", error);
        child.kill().map_err(io)?;
        child.wait().map_err(io)?;
        Ok(())
    }

    /// Freezes it, as a hypervisor or SIGSTOP does: connections stay, nothing is answered.
    ///
    /// # Errors
    /// `Io`; `NotFound` if it was killed.
    pub fn freeze(&self) -> Result<()> {
        self.signal(Signal::STOP)
    }

    /// Lets it go on.
    ///
    /// # Errors
    /// As [`freeze`](Self::freeze).
    pub fn thaw(&self) -> Result<()> {
        self.signal(Signal::CONT)
    }

    fn signal(&self, signal: Signal) -> Result<()> {
        let child = self.child.as_ref();
        let number = child.and_then(|child| i32::try_from(child.id()).ok());
        let Some(process) = number.and_then(Pid::from_raw) else {
            return Err(Error::new(ErrorKind::NotFound, "ZooKeeper was killed"));
        };
        kill_process(process, signal).map_err(|error| Error::io("signal ZooKeeper", error.into()))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.kill();
    }
}

/// Writes the files of the server `own` of those with the ports `all`.
pub(crate) fn write(settings: &Settings, folder: &Path, own: usize, all: &[Ports]) -> Result<()> {
    let io = |error| Error::io(format!("write to {}", folder.display()), error);
    let data = folder.join("data");
    fs::create_dir_all(&data).map_err(io)?;
    fs::write(data.join("myid"), (own + 1).to_string()).map_err(io)?;
    let configuration = text(settings, &data, own, all);
    fs::write(folder.join("zoo.cfg"), configuration).map_err(io)
}

/// What starts the server `own`, whose files are in `folder`. It adds what it says to `server.log` there.
pub(crate) fn command(
    jars: &Jars,
    settings: &Settings,
    folder: &Path,
    own: usize,
) -> Result<Command> {
    let log = folder.join("server.log");
    let io = |error| Error::io(format!("write to {}", folder.display()), error);
    let log = fs::File::options().create(true).append(true).open(log);
    let log = log.map_err(io)?;
    let mut java = match settings.launcher(own) {
        [] => Command::new(jars.java()),
        [program, arguments @ ..] => {
            let mut launcher = Command::new(program);
            launcher.args(arguments).arg(jars.java());
            launcher
        }
    };
    java.arg(format!("-Xmx{}m", settings.heap_mib));
    // It starts in half the time, and one garbage collector needs no further threads.
    java.args([
        "-XX:+UseSerialGC",
        "-XX:TieredStopAtLevel=1",
        "-Xshare:auto",
    ]);
    let sync = if settings.is_synced { "yes" } else { "no" };
    java.arg(format!("-Dzookeeper.forceSync={sync}"));
    java.arg("-Dzookeeper.preAllocSize=1024");
    java.arg("-cp").arg(jars.class_path());
    java.arg("org.apache.zookeeper.server.quorum.QuorumPeerMain");
    java.arg(folder.join("zoo.cfg"));
    java.stdin(Stdio::null())
        .stdout(log.try_clone().map_err(io)?)
        .stderr(log);
    Ok(java)
}
