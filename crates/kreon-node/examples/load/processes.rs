//! The processes: ZooKeeper and three servers.

use std::error::Error;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use kreon_coord::{Coordinator, ZooKeeper};
use kreon_node::layout::{InitSettings, init};
use kreon_node::{Coordination, Node, NodeSettings};
use kreon_wire::ServerId;
use kreon_zookeeper::{Ensemble, Jars, Settings};

pub const CLUSTER: &str = "load";

/// Asked for of sessions.
const SESSION_MS: u32 = 2000;

/// Memory of a server: 256 MiB for each store.
const MEMORY_BYTES: u64 = 2 << 30;

pub struct Servers {
    children: Vec<Child>,
    addresses: Vec<String>,
    _ensemble: Ensemble,
    _folder: tempfile::TempDir,
}

impl Servers {
    pub fn start() -> Result<Self, Box<dyn Error>> {
        // Not in memory, where tests may have their files.
        let folder = tempfile::tempdir_in(".")?;
        let limit = Duration::from_secs(60);
        let (jars, zoo) = (Jars::find(&Jars::cache())?, folder.path().join("zoo"));
        std::fs::create_dir(&zoo)?;
        let ensemble = Ensemble::start(&jars, &Settings::default(), &zoo, 1, None, limit)?;
        let addresses = ensemble.addresses();
        let session: Arc<dyn Coordinator> = Arc::new(ZooKeeper::connect(&addresses, SESSION_MS)?);
        let settings = InitSettings {
            replicas: Some(2),
            groups: Some(1),
            ..InitSettings::new(CLUSTER, 3)
        };
        init(&session, &settings)?;
        let mut servers = Self {
            children: Vec::new(),
            addresses: Vec::new(),
            _ensemble: ensemble,
            _folder: folder,
        };
        for server in 1..=3_u32 {
            let data = servers._folder.path().join(server.to_string());
            let mut child = Command::new(std::env::current_exe()?)
                .args(["serve", &server.to_string(), &addresses])
                .arg(data)
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()?;
            let out = child.stdout.take().ok_or("no output")?;
            servers.children.push(child);
            let mut line = String::new();
            BufReader::new(out).read_line(&mut line)?;
            servers.addresses.push(line.trim().to_owned());
        }
        Ok(servers)
    }

    pub fn addresses(&self) -> &[String] {
        &self.addresses
    }

    /// CPU time of the servers and of this process.
    pub fn cpu_seconds(&self) -> Result<Vec<f64>, Box<dyn Error>> {
        let own = std::process::id();
        let processes = self.children.iter().map(Child::id).chain([own]);
        processes.map(cpu_seconds).collect()
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        for child in &mut self.children {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// User and system time of a process, which the kernel counts in hundredths of a second.
fn cpu_seconds(process: u32) -> Result<f64, Box<dyn Error>> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat"))?;
    let behind_name = stat.rsplit(')').next().unwrap_or_default();
    let fields: Vec<&str> = behind_name.split_whitespace().collect();
    let ticks = |index: usize| -> Result<f64, Box<dyn Error>> {
        Ok(fields.get(index).ok_or("a field is missing")?.parse()?)
    };
    Ok((ticks(11)? + ticks(12)?) / 100.0)
}

/// Arguments: number, ZooKeeper, folder. Ends with the parent.
pub fn serve(mut args: impl Iterator<Item = String>) -> Result<(), Box<dyn Error>> {
    let mut next = || args.next().ok_or("an argument is missing");
    let server = ServerId(next()?.parse()?);
    let coordination = Coordination::zookeeper(&next()?, SESSION_MS);
    let folder = next()?;
    let node = Node::start(NodeSettings {
        memory_bytes: MEMORY_BYTES,
        ..NodeSettings::new(CLUSTER, server, folder, "127.0.0.1:0", coordination)
    })?;
    println!("{}", node.address());
    let mut nothing = [0];
    while std::io::stdin().read(&mut nothing)? > 0 {}
    node.abandon();
    Ok(())
}
