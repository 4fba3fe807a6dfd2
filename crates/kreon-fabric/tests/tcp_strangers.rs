//! TCP on loopback, with peers that do not behave. They speak through plain sockets.

mod common;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use common::*;
use hmac::{Hmac, KeyInit, Mac};
use kreon_base::ErrorKind;
use kreon_fabric::tcp::{TcpFabric, TcpSettings};
use kreon_fabric::{Address, Fabric, Key, Link, Listening};
use kreon_wire::limits::HEADER_BYTES;
use kreon_wire::{Control, Frame, Hello, Kind, Packet, Proof, Reason, Role, Violation};
use sha2::Sha256;

const KEY: &[u8] = b"a key of the tests";

/// Who is honest has time enough, on any machine.
fn settings() -> TcpSettings {
    TcpSettings {
        proof_ms: 60_000,
        ..TcpSettings::new("tests", Some(Key::new(KEY).unwrap()))
    }
}

/// A server, and strangers.
struct Scene {
    fabric: TcpFabric,
    host: Arc<Host>,
    listening: Box<dyn Listening>,
}

impl Scene {
    fn new(settings: TcpSettings) -> Self {
        let fabric = TcpFabric::new(settings).unwrap();
        let host = Host::new(2);
        let at = Address::new("127.0.0.1:0");
        let listening = fabric.listen(&at, host.clone()).unwrap();
        Self {
            fabric,
            host,
            listening,
        }
    }

    fn stranger(&self) -> Stranger {
        let socket = TcpStream::connect(self.listening.address().as_str()).unwrap();
        socket.set_read_timeout(Some(LIMIT)).unwrap();
        Stranger(socket)
    }

    /// A proven one, as a client.
    fn proven(&self, challenge: u8) -> (Stranger, Arc<dyn Link>) {
        let mut stranger = self.stranger();
        let hello = hello(challenge);
        stranger.send(&hello);
        let theirs = stranger.packet();
        stranger.send(&proof(KEY, "connector", &hello, &theirs));
        let last = stranger.packet();
        assert_eq!(last, proof(KEY, "acceptor", &hello, &theirs));
        (stranger, self.host.next_link())
    }

    /// Waits until an honest client gets in: where there is little time for a proof it may need several attempts.
    fn lets_in(&self) {
        let honest = TcpFabric::new(settings()).unwrap();
        let at = self.listening.address();
        until("an honest client gets in", || {
            honest.connect(&at, &client(9), LIMIT).is_ok()
        });
    }

    fn not_finished(&self) -> u64 {
        self.fabric.counts().not_finished.get()
    }

    fn not_proven(&self) -> u64 {
        self.fabric.counts().not_proven.get()
    }
}

struct Stranger(TcpStream);

impl Stranger {
    fn send(&mut self, bytes: &[u8]) {
        // It may be that nobody listens any more.
        let _ = self.0.write_all(bytes);
    }

    /// The next packet before the proof.
    fn packet(&mut self) -> Vec<u8> {
        let mut packet = vec![0; HEADER_BYTES];
        self.0.read_exact(&mut packet).unwrap();
        let body_bytes = u32::from_le_bytes(packet[8..12].try_into().unwrap());
        packet.resize(HEADER_BYTES + body_bytes as usize, 0);
        self.0.read_exact(&mut packet[HEADER_BYTES..]).unwrap();
        packet
    }

    fn is_refused_as(&mut self, reason: Reason) -> bool {
        let packet = self.packet();
        let frame = Frame::open(&packet, Role::BeforeProof).unwrap();
        let decoded = Packet::decode(&frame).unwrap();
        matches!(decoded, Packet::Control(Control::Refused(refused)) if refused.reason == reason)
    }

    /// Waits for the end of the connection.
    fn is_ended(&mut self) -> bool {
        let mut rest = Vec::new();
        match self.0.read_to_end(&mut rest) {
            Ok(_) => true,
            Err(e) => e.kind() == std::io::ErrorKind::ConnectionReset,
        }
    }
}

fn hello_of(role: Role, challenge: u8, cluster: &str, keyed: bool) -> Vec<u8> {
    let sender = match role {
        Role::Client => client(1).member,
        _ => member(1),
    };
    let hello = Hello {
        role,
        keyed,
        sender,
        challenge: [challenge; 32],
        cluster,
    };
    hello.encode().to_vec()
}

fn hello(challenge: u8) -> Vec<u8> {
    hello_of(Role::Client, challenge, "tests", true)
}

/// The proof as its definition says, by other code than that of the fabric.
fn proof(key: &[u8], side: &str, connector: &[u8], acceptor: &[u8]) -> Vec<u8> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).unwrap();
    let label = format!("kreon handshake 1, {side}");
    for text in [
        label.as_bytes(),
        &connector[HEADER_BYTES..],
        &acceptor[HEADER_BYTES..],
    ] {
        mac.update(&(text.len() as u64).to_le_bytes());
        mac.update(text);
    }
    let code = mac.finalize().into_bytes().into();
    Proof { code }.encode().to_vec()
}

/// Damaged packets with the class that each violates, for links of this role.
fn damaged(good: &[u8], role: Role) -> Vec<(Vec<u8>, Violation)> {
    let with = |at: usize, byte: u8| {
        let mut packet = good.to_vec();
        packet[at] = byte;
        packet
    };
    let other = match role {
        Role::BeforeProof => Kind::Request,
        _ => Kind::Log,
    };
    let mut long = good.to_vec();
    long[8..12].copy_from_slice(&u32::MAX.to_le_bytes());
    let mut wrong = vec![
        (
            b"GET / HTTP/1.1\r\nHost: kreon.example.org\r\n\r\n".to_vec(),
            Violation::Magic,
        ),
        (with(4, 2), Violation::Version),
        (with(5, 0xff), Violation::UnknownKind),
        (with(5, other as u8), Violation::KindForRole),
        (with(6, 1), Violation::ReservedBits),
        (long, Violation::TooLong),
    ];
    if role == Role::BeforeProof {
        wrong.push((with(8, 1), Violation::Length));
        wrong.push((with(16, 1), Violation::GroupMisplaced));
        wrong.push((with(24, 1), Violation::TermMisplaced));
        wrong.push((with(32, 1), Violation::Number));
        wrong.push((with(HEADER_BYTES + 40, 0xee), Violation::Checksum));
    }
    wrong
}

#[test]
fn garbage_before_a_proof_ends_the_connection_and_is_counted() {
    limited(|| {
        let scene = Scene::new(settings());
        let counts = &scene.fabric.counts().violations;
        for (packet, violation) in damaged(&hello(1), Role::BeforeProof) {
            let before = counts.of(violation);
            let mut stranger = scene.stranger();
            stranger.send(&packet);
            assert!(stranger.is_ended(), "{violation}");
            assert_eq!(counts.of(violation), before + 1, "{violation}");
        }
        assert_eq!(counts.total(), 11);
        assert!(scene.host.take_links().is_empty());
        scene.lets_in();
    });
}

#[test]
fn garbage_after_a_proof_ends_the_link_behind_what_was_good() {
    limited(|| {
        let scene = Scene::new(settings());
        let counts = scene.fabric.counts();
        for (wrong, violation) in damaged(&packet(3, 10), Role::Client) {
            let before = counts.violations.of(violation);
            let (mut stranger, link) = scene.proven(1);
            stranger.send(&[packet(1, 10), packet(2, 99_999), wrong].concat());
            let (arrived, error) = until_closed(&link);
            assert_eq!(arrived, [1, 2], "{violation}");
            assert_eq!(error.kind(), ErrorKind::Corruption);
            assert_eq!(counts.violations.of(violation), before + 1, "{violation}");
            assert!(stranger.is_ended());
            assert!(send(&link, &packet(1, 1)).is_err());
        }
        assert_eq!(counts.broken.get(), counts.violations.total());
        scene.lets_in();
    });
}

#[test]
fn a_long_packet_takes_no_memory_before_it_comes() {
    limited(|| {
        let scene = Scene::new(settings());
        // So many headers of 17 MiB would take 850 MiB.
        let many: Vec<_> = (0..50).map(|n| scene.proven(n)).collect();
        let long = packet(1, 17 << 20);
        let resident = || {
            let status = std::fs::read_to_string("/proc/self/statm").unwrap();
            let pages = status.split(' ').nth(1).unwrap();
            pages.parse::<u64>().unwrap() * 4096
        };
        let before = resident();
        for (stranger, link) in many {
            let mut stranger = stranger;
            stranger.send(&long[..HEADER_BYTES + 1]);
            let mut events = Vec::new();
            link.poll(&mut events, Duration::from_millis(2)).unwrap();
            assert!(events.is_empty());
            std::mem::forget((stranger, link));
        }
        let more = resident().saturating_sub(before);
        assert!(more < 50 << 20, "{more} bytes");
    });
}

#[test]
fn an_end_within_a_packet_is_told_as_such() {
    limited(|| {
        let scene = Scene::new(settings());
        let (mut stranger, link) = scene.proven(1);
        let packet = packet(1, 1000);
        stranger.send(&packet);
        stranger.send(&packet[..700]);
        drop(stranger);
        let (arrived, error) = until_closed(&link);
        assert_eq!((arrived, error.kind()), (vec![1], ErrorKind::Io));
    });
}

#[test]
fn a_packet_in_single_bytes_arrives() {
    limited(|| {
        let scene = Scene::new(settings());
        let (mut stranger, link) = scene.proven(1);
        stranger.0.set_nodelay(true).unwrap();
        let reader = std::thread::spawn(move || until_closed(&link));
        let bytes = [packet(1, 100), packet(2, 1)].concat();
        bytes.iter().for_each(|byte| stranger.send(&[*byte]));
        drop(stranger);
        assert_eq!(reader.join().unwrap().0, [1, 2]);
    });
}

#[test]
fn a_wrong_key_or_cluster_is_refused_and_counted() {
    limited(|| {
        let scene = Scene::new(settings());
        let mut stranger = scene.stranger();
        stranger.send(&hello(1));
        let theirs = stranger.packet();
        let wrong = proof(b"another key, as long", "connector", &hello(1), &theirs);
        stranger.send(&wrong);
        assert!(stranger.is_refused_as(Reason::NotProven) && stranger.is_ended());
        assert_eq!(scene.not_proven(), 1);
        let mut stranger = scene.stranger();
        stranger.send(&hello_of(Role::Client, 1, "others", true));
        assert!(stranger.is_refused_as(Reason::OtherCluster) && stranger.is_ended());
        let mut stranger = scene.stranger();
        stranger.send(&hello_of(Role::Client, 1, "tests", false));
        assert!(stranger.is_refused_as(Reason::NotProven) && stranger.is_ended());
        assert_eq!(scene.not_proven(), 3);
        // And so do fabrics tell it.
        let other = Key::new(b"another key, as long").unwrap();
        let other = TcpFabric::new(TcpSettings::new("tests", Some(other))).unwrap();
        let at = scene.listening.address();
        let error = other.connect(&at, &client(1), LIMIT).err().unwrap();
        assert!(error.to_string().contains("NotProven"), "{error}");
        assert!(scene.host.take_links().is_empty());
    });
}

#[test]
fn a_proof_that_was_recorded_is_of_no_use() {
    limited(|| {
        let scene = Scene::new(settings());
        let mut first = scene.stranger();
        first.send(&hello(1));
        let recorded = proof(KEY, "connector", &hello(1), &first.packet());
        first.send(&recorded);
        first.packet();
        let mut second = scene.stranger();
        second.send(&hello(1));
        second.packet();
        second.send(&recorded);
        assert!(second.is_refused_as(Reason::NotProven) && second.is_ended());
        assert_eq!(scene.not_proven(), 1);
    });
}

#[test]
fn a_challenge_that_is_sent_back_proves_nothing() {
    limited(|| {
        let scene = Scene::new(settings());
        // To one who listens: its own challenge, over a second connection.
        let mut first = scene.stranger();
        first.send(&hello_of(Role::PeerStream, 1, "tests", true));
        let theirs = first.packet();
        let mut second = scene.stranger();
        second.send(&theirs);
        assert!(second.is_refused_as(Reason::NotProven), "it meets itself");
        assert_eq!(scene.not_proven(), 1);
        // To one who connects: all that it says.
        let mirror = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let at = Address::new(&mirror.local_addr().unwrap().to_string());
        let echo = std::thread::spawn(move || {
            let (mut socket, _) = mirror.accept().unwrap();
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = socket.read(&mut bytes) {
                let _ = socket.write_all(&bytes[..count]);
            }
        });
        let error = scene.fabric.connect(&at, &client(1), LIMIT).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Closed, "{error}");
        assert_eq!(scene.not_proven(), 2);
        echo.join().unwrap();
    });
}

#[test]
fn one_that_is_slow_before_its_proof_is_dropped() {
    limited(|| {
        let scene = Scene::new(TcpSettings {
            proof_ms: 150,
            ..settings()
        });
        let start = Instant::now();
        let mut stranger = scene.stranger();
        for byte in hello(1) {
            stranger.send(&[byte]);
            std::thread::sleep(Duration::from_millis(3));
        }
        assert!(stranger.is_ended());
        assert!(start.elapsed() >= Duration::from_millis(150));
        assert_eq!(scene.not_finished(), 1);
        scene.lets_in();
    });
}

#[test]
fn few_are_heard_before_their_proof_and_others_wait() {
    limited(|| {
        let scene = Scene::new(TcpSettings {
            unproven_max: 3,
            ..settings()
        });
        let mut silent: Vec<_> = (0..3).map(|_| scene.stranger()).collect();
        // Who says hello is answered at once, if it is heard.
        let mut waiting = scene.stranger();
        waiting.send(&hello(1));
        let short = Some(Duration::from_millis(50));
        waiting.0.set_read_timeout(short).unwrap();
        assert!(waiting.0.peek(&mut [0]).is_err(), "a fourth was heard");
        waiting.0.set_read_timeout(Some(LIMIT)).unwrap();
        // One goes, and it is heard.
        drop(silent.pop());
        waiting.packet();
        assert_eq!(scene.not_finished(), 1);
        drop(silent);
        scene.lets_in();
        until("all are counted", || scene.not_finished() == 3);
    });
}

#[test]
fn those_that_are_dropped_as_slow_make_room() {
    limited(|| {
        let scene = Scene::new(TcpSettings {
            proof_ms: 100,
            unproven_max: 3,
            ..settings()
        });
        let silent: Vec<_> = (0..3).map(|_| scene.stranger()).collect();
        scene.lets_in();
        until("all are counted", || scene.not_finished() >= 3);
        drop(silent);
    });
}

#[test]
fn packets_ahead_of_the_answer_to_a_proof_are_a_violation() {
    limited(|| {
        let scene = Scene::new(settings());
        let mut stranger = scene.stranger();
        stranger.send(&hello(1));
        let theirs = stranger.packet();
        let proof = proof(KEY, "connector", &hello(1), &theirs);
        stranger.send(&[proof, packet(1, 10)].concat());
        assert!(stranger.is_ended());
        assert_eq!(scene.fabric.counts().violations.total(), 1);
        assert!(scene.host.take_links().is_empty());
    });
}
