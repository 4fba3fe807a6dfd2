//! Redis with one replica, both on this machine, and its client.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};
use redis::Connection;

use super::nodes::free_port;
use super::processes::Servers;
use super::store::{Load, Store};

/// Connections with many calls under way. A `WAIT` holds up its connection, so there is more than one.
const CONNECTIONS: usize = 8;

/// How long the servers may take to be ready.
const PATIENCE: Duration = Duration::from_secs(20);

/// What is written to files: nothing, and what comes closest to a cluster of kreon.
const MODES: [&[&str]; 2] = [
    &["--appendonly", "no"],
    &["--appendonly", "yes", "--appendfsync", "everysec"],
];

/// One server, which ends with this.
struct Server {
    child: Child,
    port: u16,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A server with a replica, and connections to it.
struct Redis {
    name: String,
    processes: Servers,
    connections: Vec<Connection>,
    _servers: [Server; 2],
}

/// A Redis for each mode, with folders below `dir`.
///
/// # Errors
/// A program cannot be started, or is not ready in time.
pub fn start(program: &Path, dir: &Path) -> Result<Vec<Box<dyn Store>>> {
    let mut stores: Vec<Box<dyn Store>> = Vec::new();
    for (number, mode) in MODES.iter().enumerate() {
        let dir = dir.join(format!("redis-{number}"));
        stores.push(Box::new(Redis::start(program, &dir, mode)?));
    }
    Ok(stores)
}

impl Redis {
    fn start(program: &Path, dir: &Path, mode: &[&str]) -> Result<Self> {
        let primary = serve(program, &dir.join("primary"), mode, None)?;
        let replica = serve(program, &dir.join("replica"), mode, Some(primary.port))?;
        let client = redis::Client::open(format!("redis://127.0.0.1:{}/", primary.port))?;
        let until = Instant::now() + PATIENCE;
        let mut first = connect(&client, until)?;
        while !info(&mut first, "replication")?.contains("state=online") {
            ensure!(Instant::now() < until, "the replica is not ready in time");
            std::thread::sleep(Duration::from_millis(50));
        }
        let version = info(&mut first, "server")?;
        let version = version
            .lines()
            .find_map(|line| line.strip_prefix("redis_version:"));
        let name = format!(
            "Redis {}, {}, replica, `WAIT 1`: in the memory of both",
            version.unwrap_or("?").trim(),
            mode.join(" ").trim_start_matches("--").replace(" --", " ")
        );
        let mut connections = vec![first];
        for _ in 1..CONNECTIONS {
            connections.push(connect(&client, until)?);
        }
        let processes = Servers {
            primary: vec![primary.child.id()],
            backup: vec![replica.child.id()],
            others: Vec::new(),
        };
        Ok(Self {
            name,
            processes,
            connections,
            _servers: [primary, replica],
        })
    }

    /// Has each connection do batches of calls in a thread of its own until the load ends; how many calls all made.
    fn together(
        &mut self,
        load: &Load,
        batch: impl Fn(&mut Connection, std::ops::Range<u64>) -> Result<()> + Sync,
    ) -> Result<u64> {
        let each = (load.depth / CONNECTIONS as u64).max(1);
        let (next, made) = (AtomicU64::new(0), AtomicU64::new(0));
        let work = |connection: &mut Connection| -> Result<()> {
            loop {
                let from = next.fetch_add(each, Ordering::Relaxed);
                let calls = load.batch(from, each);
                if calls.is_empty() {
                    return Ok(());
                }
                let count = calls.end - calls.start;
                batch(connection, calls)?;
                made.fetch_add(count, Ordering::Relaxed);
            }
        };
        std::thread::scope(|scope| {
            let connections = self.connections.iter_mut();
            let threads: Vec<_> = connections
                .map(|connection| scope.spawn(|| work(connection)))
                .collect();
            threads
                .into_iter()
                .try_for_each(|thread| thread.join().map_err(|_| anyhow!("a client panicked"))?)
        })?;
        Ok(made.load(Ordering::Relaxed))
    }
}

fn serve(program: &Path, dir: &Path, mode: &[&str], of: Option<u16>) -> Result<Server> {
    std::fs::create_dir_all(dir)?;
    let port = free_port()?;
    let mut command = Command::new(program);
    command.args(["--port", &port.to_string(), "--bind", "127.0.0.1"]);
    command.args(["--save", "", "--repl-diskless-sync-delay", "0"]);
    command.args(mode).arg("--dir").arg(dir);
    if let Some(of) = of {
        command.args(["--replicaof", "127.0.0.1", &of.to_string()]);
    }
    command.stdin(Stdio::null()).stdout(Stdio::null());
    let child = command
        .spawn()
        .with_context(|| format!("starting {}", program.display()))?;
    Ok(Server { child, port })
}

fn connect(client: &redis::Client, until: Instant) -> Result<Connection> {
    loop {
        match client.get_connection_with_timeout(Duration::from_secs(1)) {
            Ok(connection) => return Ok(connection),
            Err(error) if Instant::now() >= until => return Err(error.into()),
            Err(_) => std::thread::sleep(Duration::from_millis(20)),
        }
    }
}

fn info(connection: &mut Connection, section: &str) -> Result<String> {
    Ok(redis::cmd("INFO").arg(section).query(connection)?)
}

/// How many replicas have what was written before on a connection: the one.
fn check(replicas: u64) -> Result<()> {
    ensure!(replicas >= 1, "no replica has answered");
    Ok(())
}

impl Store for Redis {
    fn name(&self) -> &str {
        &self.name
    }

    fn servers(&self) -> &Servers {
        &self.processes
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let mut pipe = redis::pipe();
        pipe.cmd("SET").arg(key).arg(value).ignore();
        pipe.cmd("WAIT").arg(1).arg(0);
        let (replicas,): (u64,) = pipe.query(&mut self.connections[0])?;
        check(replicas)
    }

    fn get(&mut self, key: &[u8]) -> Result<bool> {
        let found: Option<Vec<u8>> = redis::cmd("GET").arg(key).query(&mut self.connections[0])?;
        Ok(found.is_some())
    }

    fn puts(&mut self, load: &Load) -> Result<u64> {
        self.together(load, |connection, calls| {
            let (mut name, mut value) = (Vec::new(), Vec::new());
            let mut pipe = redis::pipe();
            for n in calls {
                load.pair(n, &mut name, &mut value);
                pipe.cmd("SET").arg(&name).arg(&value).ignore();
            }
            pipe.cmd("WAIT").arg(1).arg(0);
            let (replicas,): (u64,) = pipe.query(connection)?;
            check(replicas)
        })
    }

    fn gets(&mut self, load: &Load) -> Result<u64> {
        self.together(load, |connection, calls| {
            let mut name = Vec::new();
            let mut pipe = redis::pipe();
            for n in calls {
                load.key(n, &mut name);
                pipe.cmd("GET").arg(&name);
            }
            let found: Vec<Option<Vec<u8>>> = pipe.query(connection)?;
            ensure!(found.iter().all(Option::is_some), "a value is missing");
            Ok(())
        })
    }
}
