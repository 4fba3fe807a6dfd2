//! The course: loading, a lost primary, its return.

use std::error::Error;
use std::ops::Range;
use std::path::PathBuf;
use std::process::{Child, Command as Process, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use kreon_coord::{CallId, Command, Coordinator, Event, Mode, Paths, Reply as Told};
use kreon_fabric::tcp::{TcpFabric, TcpSettings};
use kreon_fabric::{Address, Link};
use kreon_replica::drive::{Asking, Clients, Links, Server, ServerSettings};
use kreon_replica::machine::{Configuration, Member, ProcessId, ServerId, Term};
use kreon_wire::ServerNode;

use super::Choice;
use super::child::{CLUSTER, links_settings, server_node, start_of};
use super::client::Client;
use super::compare::last_file;
use super::coordinator::{Served, now_us, serve};
use super::measure::{cpu_us, part};
use super::words::{GROUP, VALUE_BYTES};

pub(super) type Outcome<T> = Result<T, Box<dyn Error>>;

/// Nothing takes so long, but copies.
const LIMIT: Duration = Duration::from_secs(120);

/// Puts under way at a time.
const WINDOW: u64 = 4096;

/// Keys of single puts begin here.
const SINGLE: u64 = 1 << 40;

/// Keys that are put while the first server joins again.
const BESIDE: u64 = 1 << 41;

struct NoClients;

impl Clients for NoClients {
    fn linked(&self, link: Arc<dyn Link>) {
        link.close("no store is here");
    }
}

/// A server's process, which ends with this.
pub(super) struct Running {
    child: Child,
    pid: u32,
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// All that runs.
pub(super) struct Course<'a> {
    pub(super) choice: &'a Choice,
    dir: PathBuf,
    coordinator: Served,
    paths: Paths,
    fabric: Arc<TcpFabric>,
    master: Arc<Server>,
}

/// Runs it; prints figures.
pub fn run(choice: &Choice) -> Outcome<()> {
    let own = std::env::temp_dir().join(format!("kreon-two-replicas-{}", std::process::id()));
    let dir = choice.dir.clone().unwrap_or_else(|| own.clone());
    std::fs::create_dir_all(&dir)?;
    let outcome = Course::start(choice, dir).and_then(|course| {
        let outcome = course.all();
        course.master.end();
        outcome
    });
    if choice.dir.is_none() {
        std::fs::remove_dir_all(&own)?;
    }
    outcome
}

/// The operator's part, before any server starts: what the nodes of a cluster stand under.
fn make_folders(coordinator: &Served, paths: &Paths) -> Outcome<()> {
    for path in paths.folders().into_iter().chain([paths.master_fence()]) {
        let create = Command::Create(path, [].into(), Mode::Persistent);
        match call(coordinator, create)? {
            Told::Created(_) => {}
            other => return Err(format!("a folder cannot be made: {other:?}").into()),
        }
    }
    Ok(())
}

/// One command to the coordinator, in a session of its own.
fn call(coordinator: &Served, command: Command) -> Outcome<Told> {
    let session = coordinator.root.another();
    session.send(CallId(1), command)?;
    let mut events = Vec::new();
    session.poll(&mut events, Duration::from_secs(1))?;
    session.expire();
    let replied = events.into_iter().find_map(|event| match event {
        Event::Replied(_, reply) => Some(reply),
        _ => None,
    });
    replied.ok_or_else(|| "the coordinator says nothing".into())
}

impl<'a> Course<'a> {
    fn start(choice: &'a Choice, dir: PathBuf) -> Outcome<Self> {
        let coordinator = serve(choice.silence_ms)?;
        let paths = Paths::new(CLUSTER);
        make_folders(&coordinator, &paths)?;
        let fabric = Arc::new(TcpFabric::new(TcpSettings::new(CLUSTER, None))?);
        let me = start_of(9)?;
        let shared = Arc::clone(&fabric) as Arc<dyn kreon_fabric::Fabric>;
        let links = Links::start(shared, links_settings(me), Arc::new(NoClients))?;
        let node = server_node(me.server, &links);
        let root = coordinator.root.another();
        let begin = Box::new(move || Ok(Arc::new(root.another()) as Arc<dyn Coordinator>));
        let asking = Asking::new((paths.clone(), begin), (me, node), true);
        let settings = ServerSettings {
            timing: choice.timing(),
            mastered: vec![GROUP],
        };
        Ok(Self {
            master: Server::start(settings, links, asking)?,
            choice,
            dir,
            coordinator,
            paths,
            fabric,
        })
    }

    fn all(&self) -> Outcome<()> {
        let mut servers = [Some(self.spawn(1)?), Some(self.spawn(2)?)];
        self.make_group()?;
        let (first, mut client) = self.primary(2)?;
        let backup = 3 - first;
        println!("server {first} is the primary, server {backup} its backup");
        let count = (self.choice.mib << 20) / VALUE_BYTES as u64;
        let singles = 200.max((count / 500).min(2000));
        self.single_puts(&mut client, singles)?;
        let pids = |servers: &[Option<Running>; 2]| {
            let pid = |server: u32| servers[server as usize - 1].as_ref().map_or(0, |p| p.pid);
            (pid(first), pid(backup))
        };
        self.load(&mut client, 0..count, pids(&servers), backup)?;
        drop(client);
        let (first, mut client) = self.primary(2)?;
        // More, until the primary is killed with puts under way.
        let more = count..count + count / 4 + 2 * WINDOW;
        let (acknowledged, killed_us) =
            self.kill_under_load(&mut client, more.clone(), &mut servers[first as usize - 1]);
        drop(client);
        let (_, mut client) = self.fail_over(killed_us)?;
        let there = [0..more.start + acknowledged, SINGLE..SINGLE + singles];
        for keys in &there {
            let missing = client.missing(keys.clone(), 256)?;
            println!(
                "of {} acknowledged puts {missing} are missing",
                keys.end - keys.start
            );
            if missing > 0 {
                return Err("acknowledged puts are missing".into());
            }
        }
        let beside = self.join_beside_writes(&mut client, first, &mut servers)?;
        self.compare_and_verify(&mut client, servers, &there, beside)
    }

    /// What of a server that is to be a process of its own.
    fn spawn(&self, server: u32) -> Outcome<Running> {
        let child = Process::new(std::env::current_exe()?)
            .args(["--server", &server.to_string()])
            .arg(self.coordinator.address.to_string())
            .arg(self.base(server))
            .arg(self.choice.memory_mib.to_string())
            .arg(self.choice.silence_ms.to_string())
            .stdin(Stdio::piped())
            .spawn()?;
        let pid = child.id();
        Ok(Running { child, pid })
    }

    /// What the files of a server are called, but for a number behind.
    pub(super) fn base(&self, server: u32) -> PathBuf {
        self.dir.join(format!("server-{server}.kreon"))
    }

    fn call(&self, command: Command) -> Outcome<Told> {
        call(&self.coordinator, command)
    }

    /// The servers that have a session.
    fn live(&self) -> Outcome<Vec<Member>> {
        let (path, watch) = (self.paths.live(), false);
        let Told::Children(names) = self.call(Command::Children { path, watch })? else {
            return Ok(Vec::new());
        };
        let live = names.iter().filter_map(|name| Paths::live_of(name));
        Ok(live
            .map(|(server, process)| Member {
                server: ServerId(server),
                process: ProcessId(process.to_be_bytes()),
            })
            .collect())
    }

    /// Waits for something.
    fn wait_for<T>(
        &self,
        what: &str,
        limit: Duration,
        mut is_there: impl FnMut() -> Outcome<Option<T>>,
    ) -> Outcome<T> {
        let started = Instant::now();
        while started.elapsed() < limit {
            if let Some(found) = is_there()? {
                return Ok(found);
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        Err(format!("{what}: not within {limit:?}").into())
    }

    /// The operator's part: a group of both servers.
    fn make_group(&self) -> Outcome<()> {
        let mut members = self.wait_for("two servers", LIMIT, || {
            let mut live = self.live()?;
            live.retain(|member| member.server.0 < 3);
            Ok((live.len() == 2).then_some(live))
        })?;
        members.sort_unstable();
        let config = Configuration {
            term: Term(1),
            primary: None,
            servers: members.iter().map(|member| member.server).collect(),
            in_sync: members.into(),
            min_in_sync: 1,
            after_loss: false,
            loss_term: Term(0),
            all_needed: false,
            ranges: [].into(),
        };
        let bytes = config.to_node(GROUP)?.encode();
        let path = self.paths.group(GROUP.0);
        match self.call(Command::Create(path, bytes.into(), Mode::Persistent))? {
            Told::Created(_) => {}
            other => return Err(format!("the group cannot be made: {other:?}").into()),
        }
        self.master.look();
        Ok(())
    }

    fn connect(&self, server: u32) -> Outcome<Option<Client>> {
        let (path, watch) = (self.paths.server(server), false);
        let Told::Node(node) = self.call(Command::Get { path, watch })? else {
            return Ok(None);
        };
        let node = ServerNode::decode(&node.data)?;
        let address = Address::new(&node.client_address);
        Ok(Client::connect(&self.fabric, &address).ok())
    }

    /// Waits until a server is the primary of so many members.
    fn primary(&self, members: u64) -> Outcome<(u32, Client)> {
        let mut clients: [Option<Client>; 2] = [None, None];
        self.wait_for("a primary", LIMIT, || {
            for (index, held) in clients.iter_mut().enumerate() {
                let server = index as u32 + 1;
                if held.is_none() {
                    *held = self.connect(server)?;
                }
                let status = held.as_mut().map(Client::status);
                match status {
                    Some(Ok(status)) if status.is_serving && status.members == members => {
                        return Ok(held.take().map(|client| (server, client)));
                    }
                    Some(Err(_)) => *held = None,
                    _ => {}
                }
            }
            Ok(None)
        })
    }

    fn single_puts(&self, client: &mut Client, count: u64) -> Outcome<()> {
        let mut times_us = Vec::new();
        for key in SINGLE..SINGLE + count {
            let started = Instant::now();
            let (done, why) = client.put_all(key..key + 1, 1, |_| true);
            if done != 1 {
                return Err(format!("a put fails: {why:?}").into());
            }
            times_us.push(started.elapsed().as_secs_f64() * 1e6);
        }
        times_us.sort_by(f64::total_cmp);
        let (p50, p99) = (part(&times_us, 0.5), part(&times_us, 0.99));
        println!("one put at a time, idle: p50 {p50:.0} us, p99 {p99:.0} us");
        Ok(())
    }

    fn load(
        &self,
        client: &mut Client,
        keys: Range<u64>,
        (primary, backup): (u32, u32),
        backup_server: u32,
    ) -> Outcome<()> {
        let count = keys.end - keys.start;
        let mut of_backup = self.connect(backup_server)?.ok_or("no backup")?;
        let mut sent = || -> Outcome<[u64; 3]> {
            let ((stream, control), back) =
                (client.status()?.sent_bytes, of_backup.status()?.sent_bytes);
            Ok([stream, control, back.0 + back.1])
        };
        let before = (sent()?, cpu_us(primary)?, cpu_us(backup)?);
        let started = Instant::now();
        let (done, why) = client.put_all(keys, WINDOW, |_| true);
        let seconds = started.elapsed().as_secs_f64();
        if done != count {
            return Err(format!("{done} of {count} puts are replicated: {why:?}").into());
        }
        // What was put last is still being written by the backup.
        std::thread::sleep(Duration::from_millis(300));
        let mut sent = || -> Outcome<[u64; 3]> {
            let ((stream, control), back) =
                (client.status()?.sent_bytes, of_backup.status()?.sent_bytes);
            Ok([stream, control, back.0 + back.1])
        };
        let after = (sent()?, cpu_us(primary)?, cpu_us(backup)?);
        let given = (count * (8 + VALUE_BYTES as u64)) as f64;
        let bytes = |index: usize| (after.0[index] - before.0[index]) as f64 / given;
        let each = |us: u64| us as f64 / count as f64;
        println!(
            "loaded {count} puts in {seconds:.1} s: {:.0} k/s",
            count as f64 / seconds / 1e3
        );
        println!(
            "bytes on the wire per byte given: {:.3} (stream {:.3}, answers {:.4}, control {:.4})",
            bytes(0) + bytes(1) + bytes(2),
            bytes(0),
            bytes(2),
            bytes(1)
        );
        println!(
            "CPU per put: primary {:.2} us, backup {:.2} us",
            each(after.1 - before.1),
            each(after.2 - before.2)
        );
        Ok(())
    }

    /// Puts until the primary is gone; how many are acknowledged, and when it was killed.
    fn kill_under_load(
        &self,
        client: &mut Client,
        keys: Range<u64>,
        primary: &mut Option<Running>,
    ) -> (u64, u64) {
        let kill_at = (keys.end - keys.start) / 2;
        let mut killed_us = 0;
        let (done, _) = client.put_all(keys, WINDOW, |done| {
            if done >= kill_at && killed_us == 0 {
                killed_us = now_us();
                // `kill -9`, and then it is waited for.
                drop(primary.take());
            }
            true
        });
        (done, killed_us)
    }

    fn fail_over(&self, killed_us: u64) -> Outcome<(u32, Client)> {
        let (server, mut client) = self.primary(1)?;
        let (done, why) = client.put_all(BESIDE - 1..BESIDE, 1, |_| true);
        let acknowledged_us = now_us();
        if done != 1 {
            return Err(format!("the new primary takes no write: {why:?}").into());
        }
        let [sealed, equal, opened, serving] = client.status()?.moments;
        let found = self.coordinator.expired_us.load(Ordering::Acquire);
        let ms = |from: u64, to: u64| to.saturating_sub(from) as f64 / 1e3;
        println!(
            "server {server} is promoted: {:.0} ms from the kill to the first acknowledged write",
            ms(killed_us, acknowledged_us)
        );
        println!(
            "  found out {:.0} ms, sealed {:.0} ms, equalised {:.0} ms, opened {:.0} ms, serving {:.0} ms, \
             first write {:.0} ms",
            ms(killed_us, found),
            ms(found, sealed),
            ms(sealed, equal),
            ms(equal, opened),
            ms(opened, serving),
            ms(serving, acknowledged_us)
        );
        Ok((server, client))
    }

    /// The first server comes back and joins; the keys that were put beside it.
    fn join_beside_writes(
        &self,
        client: &mut Client,
        first: u32,
        servers: &mut [Option<Running>; 2],
    ) -> Outcome<Range<u64>> {
        let mut writer = self.connect(3 - first)?.ok_or("no primary")?;
        let before = client.status()?.sent_bytes.0;
        let (started, is_over) = (Instant::now(), AtomicBool::new(false));
        let limit = LIMIT + Duration::from_millis(20 * self.choice.mib);
        std::thread::scope(|scope| {
            let writing = scope.spawn(|| {
                let keys = BESIDE..BESIDE + (1 << 40);
                writer.put_all(keys, 64, |_| !is_over.load(Ordering::Acquire))
            });
            let joined = self.spawn(first).and_then(|process| {
                servers[first as usize - 1] = Some(process);
                self.wait_for("the server joins", limit, || {
                    let status = client.status()?;
                    Ok((status.members == 2 && status.is_serving).then_some(status))
                })
            });
            let seconds = started.elapsed().as_secs_f64();
            is_over.store(true, Ordering::Release);
            let (done, why) = writing.join().map_err(|_| "the writer panicked")?;
            let status = joined?;
            if let Some(error) = why {
                return Err(format!("a write beside the copy fails: {error}").into());
            }
            let mib = (status.sent_bytes.0 - before) as f64 / f64::from(1 << 20);
            let file = last_file(&self.base(first))?;
            println!(
                "server {first} is in the set again after {seconds:.1} s, with {}: {mib:.0} MiB sent, {:.0} MiB/s; {done} puts beside",
                file.display(),
                mib / seconds
            );
            Ok(BESIDE..BESIDE + done)
        })
    }
}
