//! The processes of a cluster: a ZooKeeper and three servers.

use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use kreon_zookeeper::{Jars, Settings, mode, prepare};

/// Servers of a cluster, of which as many hold a copy as there are to be.
const SERVERS: usize = 3;

/// Name of the cluster.
const NAME: &str = "bench";

/// How long ZooKeeper may take to serve, on a machine that does other things.
const PATIENCE: Duration = Duration::from_secs(60);

/// A process that ends with this.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The processes of a cluster of one group. They end with this.
pub struct Nodes {
    servers: Vec<Process>,
    zookeeper: Process,
    coordinator: SocketAddr,
    pub copies: u8,
    /// What the program says of itself.
    pub version: String,
}

impl Nodes {
    /// Starts them in `folder`, of which each server gets a part, and does not wait until they serve.
    ///
    /// # Errors
    /// There is no ZooKeeper or no Java; a program cannot be started or fails.
    pub fn start(
        program: &Path,
        zookeeper_files: Option<&Path>,
        folder: &Path,
        copies: u8,
        memory_mib: u64,
    ) -> Result<Self> {
        let files = zookeeper_files.map_or_else(Jars::cache, PathBuf::from);
        let jars = Jars::find(&files).context("`cargo xtask zookeeper` fetches ZooKeeper")?;
        let version = Command::new(program).arg("--version").output()?;
        let version = String::from_utf8_lossy(&version.stdout).trim().to_owned();
        let (zookeeper, coordinator) = zookeeper(&jars, &folder.join("zookeeper"))?;
        let mut nodes = Self {
            servers: Vec::new(),
            zookeeper,
            coordinator,
            copies,
            version,
        };
        nodes.init(program)?;
        for number in 1..=SERVERS {
            nodes.serve(program, folder, number, memory_mib)?;
        }
        Ok(nodes)
    }

    /// The cluster's address.
    pub fn url(&self) -> String {
        format!("zk://{}/{NAME}", self.coordinator)
    }

    fn init(&self, program: &Path) -> Result<()> {
        let mut init = Command::new(program);
        init.args(["cluster", "init", "--cluster", &self.url()]);
        init.args(["--servers", &SERVERS.to_string(), "--groups", "1"]);
        // Two of two copies: forced, as the failure of either would stop writes.
        init.args(["--replicas", &self.copies.to_string(), "--min-in-sync", "2"]);
        let output = init.arg("--force").output()?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "the cluster is not made: {said}");
        Ok(())
    }

    fn serve(
        &mut self,
        program: &Path,
        folder: &Path,
        number: usize,
        memory_mib: u64,
    ) -> Result<()> {
        let data = folder.join(format!("server-{number}"));
        std::fs::create_dir_all(&data)?;
        let log = File::create(folder.join(format!("server-{number}.log")))?;
        let mut serve = Command::new(program);
        serve.args(["cluster", "serve", "--cluster", &self.url()]);
        serve.args(["--id", &number.to_string(), "--listen", "127.0.0.1:0"]);
        serve.args(["--memory", &format!("{memory_mib}MiB")]);
        serve
            .args(["--primaries-max", "1", "--data"])
            .arg(data)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log);
        let child = serve.spawn().context("starting a server")?;
        self.servers.push(Process(child));
        Ok(())
    }

    /// The process of the server with this number.
    ///
    /// # Errors
    /// There is none of this number.
    pub fn process(&self, number: u32) -> Result<u32> {
        let index = (number as usize).checked_sub(1);
        let process = index.and_then(|index| self.servers.get(index));
        Ok(process.context("a server that was not started")?.0.id())
    }

    /// The process of the coordinator.
    pub fn coordinator(&self) -> u32 {
        self.zookeeper.0.id()
    }

    /// Numbers of the servers.
    pub fn numbers(&self) -> impl Iterator<Item = u32> {
        (1..).take(self.servers.len())
    }
}

/// Starts a ZooKeeper and waits until it serves.
fn zookeeper(jars: &Jars, folder: &Path) -> Result<(Process, SocketAddr)> {
    let port = free_port()?;
    let (mut command, address) = prepare(jars, &Settings::default(), folder, port)?;
    let process = Process(command.spawn().context("starting ZooKeeper")?);
    let begun = Instant::now();
    while mode(address).is_none() {
        let log = folder.join("server.log");
        ensure!(begun.elapsed() < PATIENCE, "see {}", log.display());
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok((process, address))
}

/// A port of the loopback address that is free now; nobody keeps it free.
pub fn free_port() -> Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("finding a free port")?;
    Ok(listener.local_addr()?.port())
}
