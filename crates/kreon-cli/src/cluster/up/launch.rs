//! Starts the processes of a cluster on one machine, each in a process group of its own: Ctrl-C reaches only who
//! started them, and that one ends them in order.

use std::collections::BTreeMap;
use std::env;
use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use kreon::{Error, ErrorKind, Result};
use kreon_zookeeper::{Jars, Settings, mode, prepare};

use super::folder::{Folder, last_line, status_page};
use super::plan::{Plan, is_free};
use crate::cluster::process::Process;
use crate::failure::{Code, Failure};
use crate::interrupt::Interrupt;

/// How long ZooKeeper may take to serve, on a machine that does other things.
const ZOOKEEPER_MAX: Duration = Duration::from_secs(60);

/// How long a server may take from serving to saying where its status page is.
const PAGE_MAX: Duration = Duration::from_secs(5);

/// Processes that this command started.
pub struct Launched<'a> {
    folder: &'a Folder,
    plan: &'a Plan,
    children: Vec<(String, PathBuf, Child)>,
    /// Bytes that earlier starts of these servers left in their logs.
    said_before: BTreeMap<usize, u64>,
}

impl<'a> Launched<'a> {
    /// None yet.
    pub fn new(folder: &'a Folder, plan: &'a Plan) -> Self {
        Self {
            folder,
            plan,
            children: Vec::new(),
            said_before: BTreeMap::new(),
        }
    }

    /// Where the status page of the server `number` is. It is told a moment after the server serves; none if not in time.
    pub fn status_page(&self, number: usize) -> Option<String> {
        let log = self.folder.server_log(number);
        let from = self.said_before.get(&number).copied().unwrap_or(0);
        let begun = Instant::now();
        loop {
            let page = status_page(&log, from);
            if page.is_some() || begun.elapsed() > PAGE_MAX {
                return page;
            }
            sleep(Duration::from_millis(20));
        }
    }

    /// Starts ZooKeeper unless it runs, and waits until it serves.
    ///
    /// # Errors
    /// Busy if its port is taken; whatever ended it; an interruption.
    pub fn zookeeper(&mut self, jars: &Jars, interrupt: &Interrupt) -> Result<(), Failure> {
        let file = self.folder.zookeeper_process();
        let (port, log) = (self.plan.zookeeper_port, self.folder.zookeeper_log());
        let settings = Settings::default();
        let (command, address) = prepare(jars, &settings, &self.folder.zookeeper(), port)?;
        if Process::recorded(&file)?.is_none() {
            port_is_free(port, "--zookeeper-port")?;
            self.start("ZooKeeper", command, &file, log)?;
        }
        let begun = Instant::now();
        while mode(address).is_none() {
            interrupt.check()?;
            if let Some(failure) = self.ended() {
                return Err(failure);
            }
            if begun.elapsed() > ZOOKEEPER_MAX {
                let message = format!("ZooKeeper at {address} does not serve");
                let log = self.folder.zookeeper_log();
                return Err(Failure::from(Error::new(ErrorKind::Busy, message))
                    .with_advice(format!("its log is {}", log.display())));
            }
            sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    /// Starts the server `number` unless it runs, and does not wait for it. Whether it did.
    ///
    /// # Errors
    /// Busy if its port is taken; `Io`.
    pub fn server(&mut self, number: usize) -> Result<bool, Failure> {
        let file = self.folder.server_process(number);
        if Process::recorded(&file)?.is_some() {
            return Ok(false);
        }
        let address = self.plan.address(number);
        let port = self.plan.server_ports.get(number.saturating_sub(1));
        port_is_free(port.copied().unwrap_or_default(), "--port")?;
        let data = self.folder.server(number);
        let io = |what: &Path, error| Error::io(format!("make {}", what.display()), error);
        fs::create_dir_all(&data).map_err(|error| io(&data, error))?;
        let log = self.folder.server_log(number);
        let output = File::options().create(true).append(true).open(&log);
        let output = output.map_err(|error| io(&log, error))?;
        let errors = output.try_clone().map_err(|error| io(&log, error))?;
        let said = output.metadata().map_err(|error| io(&log, error))?.len();
        self.said_before.insert(number, said);
        let own = env::current_exe().map_err(|error| Error::io("find this program", error))?;
        let mut command = Command::new(own);
        command
            .args(["cluster", "serve", "--cluster", &self.plan.url()])
            .args(["--id", &number.to_string(), "--listen", &address])
            .args(["--memory", &self.plan.memory_bytes.to_string()])
            .args(["--status-listen", "127.0.0.1:0"])
            .arg("--data")
            .arg(&data)
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(errors);
        self.start(&format!("server {number}"), command, &file, log)?;
        Ok(true)
    }

    fn start(&mut self, name: &str, mut command: Command, file: &Path, log: PathBuf) -> Result<()> {
        let child = command.process_group(0).spawn();
        let mut child = child.map_err(|error| Error::io(format!("start {name}"), error))?;
        if let Err(error) = Process::record(file, child.id()) {
            // Nobody would find it again.
            let _ = child.kill();
            let _ = child.wait();
            return Err(error);
        }
        self.children.push((name.to_owned(), log, child));
        Ok(())
    }

    /// Takes out one that has ended by itself, if there is one: what it was, and what it said last.
    pub fn ended(&mut self) -> Option<Failure> {
        let ended = |child: &mut Child| child.try_wait().ok().flatten();
        let mut children = self.children.iter_mut().enumerate();
        let (at, status) = children.find_map(|(at, (_, _, child))| Some((at, ended(child)?)))?;
        let (name, log, _) = self.children.remove(at);
        let message = format!("{name} ended ({status}) and said: {}", last_line(&log));
        let advice = format!("its log is {}", log.display());
        Some(Failure::new(Code::Other, message, advice))
    }
}

fn port_is_free(port: u16, option: &str) -> Result<(), Failure> {
    if is_free(port) {
        return Ok(());
    }
    let busy = Error::new(
        ErrorKind::Busy,
        format!("port {port} of 127.0.0.1 is taken"),
    );
    Err(Failure::from(busy).with_advice(format!("name another by {option}, or 0 for any")))
}
