//! What the TCP fabric does on loopback: packets and bytes per second, their cost in CPU time, and the time of a question
//! and its answer.
//!
//! `cargo run --release -p kreon-fabric --example loopback [seconds per line]`

use std::error::Error;
use std::io::IoSlice;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use kreon_base::ErrorKind;
use kreon_fabric::tcp::{TcpFabric, TcpSettings};
use kreon_fabric::{Address, Event, Fabric, Link, PeerId, Welcome};
use kreon_wire::{Address as Place, GroupId, Member, Packet, ProcessId, Reason, Role, ServerId};
use parking_lot::{Condvar, Mutex};

const MIB: f64 = (1 << 20) as f64;

fn main() -> Result<(), Box<dyn Error>> {
    let seconds = std::env::args().nth(1).map_or(Ok(2.0), |arg| arg.parse())?;
    let run = Duration::from_secs_f64(seconds);
    println!(
        "{:>8} {:>8} {:>11} {:>9} {:>14} {:>14}",
        "senders", "bytes", "packets/s", "MiB/s", "CPU us/packet", "CPU us/MiB"
    );
    for (senders, bytes) in [
        (1, 100),
        (4, 100),
        (1, 1024),
        (1, 8192),
        (1, 65_000),
        (4, 65_000),
    ] {
        one_way(senders, bytes, run)?;
    }
    println!("\nquestion and answer, one at a time");
    println!(
        "{:>8} {:>9} {:>9} {:>9} {:>14}",
        "bytes", "p50 us", "p99 us", "max us", "CPU us/pair"
    );
    for bytes in [100, 1024, 65_000] {
        questions(bytes, run)?;
    }
    Ok(())
}

/// Packets in one direction as fast as they are taken.
fn one_way(senders: usize, bytes: usize, run: Duration) -> Result<(), Box<dyn Error>> {
    let ends = Ends::connect()?;
    let (is_over, received) = (AtomicBool::new(false), AtomicU64::new(0));
    let room = (Mutex::new(()), Condvar::new());
    let cpu = cpu_time()?;
    let start = Instant::now();
    std::thread::scope(|scope| {
        let receiver = scope.spawn(|| {
            let mut events = Vec::new();
            while ends.b.poll(&mut events, Duration::from_millis(100)).is_ok() {
                received.fetch_add(packets(&events), Relaxed);
                events.clear();
            }
        });
        // One thread hears for all senders that there is room.
        scope.spawn(|| {
            let mut events = Vec::new();
            while ends.a.poll(&mut events, Duration::from_millis(100)).is_ok() {
                events.clear();
                let _guard = room.0.lock();
                room.1.notify_all();
            }
        });
        for _ in 0..senders {
            scope.spawn(|| send_until(&ends.a, bytes, &is_over, &room));
        }
        std::thread::sleep(run);
        is_over.store(true, Relaxed);
        let elapsed = start.elapsed().as_secs_f64();
        let count = received.load(Relaxed) as f64;
        let cpu_us = cpu_time()
            .unwrap_or_default()
            .saturating_sub(cpu)
            .as_secs_f64()
            * 1e6;
        let mib = count * bytes as f64 / MIB;
        println!(
            "{senders:>8} {bytes:>8} {:>11.0} {:>9.1} {:>14.2} {:>14.0}",
            count / elapsed,
            mib / elapsed,
            cpu_us / count,
            cpu_us / mib
        );
        ends.a.close("done");
        drop(receiver);
    });
    Ok(())
}

fn send_until(
    link: &Arc<dyn Link>,
    bytes: usize,
    is_over: &AtomicBool,
    room: &(Mutex<()>, Condvar),
) {
    let body = vec![7; bytes];
    while !is_over.load(Relaxed) {
        match send(link, &body) {
            Err(e) if e.kind() == ErrorKind::Busy => {
                let mut guard = room.0.lock();
                room.1.wait_for(&mut guard, Duration::from_millis(1));
            }
            Err(_) => return,
            Ok(()) => {}
        }
    }
}

/// One packet there and one back, one after the other.
fn questions(bytes: usize, run: Duration) -> Result<(), Box<dyn Error>> {
    let ends = Ends::connect()?;
    let mut times_us = Vec::new();
    let cpu = cpu_time()?;
    let cpu = std::thread::scope(|scope| -> Result<Duration, Box<dyn Error>> {
        scope.spawn(|| {
            let (body, mut events) = (vec![7; bytes], Vec::new());
            while ends.b.poll(&mut events, Duration::from_millis(100)).is_ok() {
                for _ in 0..packets(&events) {
                    let _ = send(&ends.b, &body);
                }
                events.clear();
            }
        });
        let (body, mut events) = (vec![7; bytes], Vec::new());
        let start = Instant::now();
        while start.elapsed() < run {
            let asked = Instant::now();
            send(&ends.a, &body)?;
            while packets(&events) == 0 {
                ends.a.poll(&mut events, Duration::from_millis(100))?;
            }
            events.clear();
            times_us.push(asked.elapsed().as_secs_f64() * 1e6);
        }
        // While all threads are there.
        let cpu = cpu_time()?.saturating_sub(cpu);
        ends.a.close("done");
        Ok(cpu)
    })?;
    let cpu_us = cpu.as_secs_f64() * 1e6;
    times_us.sort_by(f64::total_cmp);
    let at = |part: f64| times_us[((times_us.len() - 1) as f64 * part) as usize];
    println!(
        "{bytes:>8} {:>9.1} {:>9.1} {:>9.0} {:>14.1}",
        at(0.5),
        at(0.99),
        at(1.0),
        cpu_us / times_us.len() as f64
    );
    Ok(())
}

fn send(link: &Arc<dyn Link>, body: &[u8]) -> kreon_base::Result<()> {
    let place = Place {
        group: GroupId(1),
        number: 1,
        ..Place::default()
    };
    let packet = Packet::request(&place, body);
    let [head, data] = packet.parts();
    link.send(&[IoSlice::new(&head), IoSlice::new(&data)])
}

fn packets(events: &[Event]) -> u64 {
    let packets = events
        .iter()
        .filter(|event| matches!(event, Event::Packet(_)));
    packets.count() as u64
}

/// CPU time of this process so far, all threads.
fn cpu_time() -> std::io::Result<Duration> {
    let mut total_ns = 0;
    for task in std::fs::read_dir("/proc/self/task")? {
        // A thread may have ended since.
        let Ok(text) = std::fs::read_to_string(task?.path().join("schedstat")) else {
            continue;
        };
        let first = text.split(' ').next().unwrap_or_default();
        total_ns += first.parse::<u64>().unwrap_or(0);
    }
    Ok(Duration::from_nanos(total_ns))
}

/// Two fabrics and a link between them.
struct Ends {
    a: Arc<dyn Link>,
    b: Arc<dyn Link>,
    _fabrics: [TcpFabric; 2],
}

impl Ends {
    fn connect() -> Result<Self, Box<dyn Error>> {
        let settings = TcpSettings::new("loopback", None);
        let fabrics = [TcpFabric::new(settings.clone())?, TcpFabric::new(settings)?];
        let host = Arc::new(Host::default());
        let listening = fabrics[1].listen(&Address::new("127.0.0.1:0"), host.clone())?;
        let me = PeerId {
            member: member(),
            role: Role::Client,
        };
        let a = fabrics[0].connect(&listening.address(), &me, Duration::from_secs(5))?;
        let mut accepted = host.accepted.lock();
        while accepted.is_none() {
            host.changed.wait(&mut accepted);
        }
        let b = accepted.take().ok_or("no link")?;
        Ok(Self {
            a,
            b,
            _fabrics: fabrics,
        })
    }
}

fn member() -> Member {
    Member {
        server: ServerId(0),
        process: ProcessId([1; 16]),
    }
}

#[derive(Default)]
struct Host {
    accepted: Mutex<Option<Arc<dyn Link>>>,
    changed: Condvar,
}

impl Welcome for Host {
    fn me(&self) -> Member {
        member()
    }

    fn judge(&self, _: &PeerId) -> Result<(), Reason> {
        Ok(())
    }

    fn linked(&self, link: Arc<dyn Link>) {
        *self.accepted.lock() = Some(link);
        self.changed.notify_all();
    }
}
