//! TCP on loopback, with peers that behave.

mod common;

use std::net::TcpListener;
use std::sync::Arc;
use std::time::{Duration, Instant};

use common::*;
use kreon_base::ErrorKind;
use kreon_fabric::tcp::{TcpFabric, TcpSettings};
use kreon_fabric::{Address, Event, Fabric, Key, Link, Listening};
use kreon_wire::{Reason, Role};

/// There is time enough for a proof, and for a peer that does not read yet, on any machine.
fn settings() -> TcpSettings {
    let key = Key::new(b"a key of the tests").unwrap();
    TcpSettings {
        proof_ms: 60_000,
        unacknowledged_ms: 600_000,
        ..TcpSettings::new("tests", Some(key))
    }
}

/// Two processes; the second listens.
struct Pair {
    fabrics: [TcpFabric; 2],
    host: Arc<Host>,
    listening: Box<dyn Listening>,
}

impl Pair {
    fn new(settings: TcpSettings) -> Self {
        Self::at("127.0.0.1:0", settings)
    }

    fn at(address: &str, settings: TcpSettings) -> Self {
        let fabrics = [0, 1].map(|_| TcpFabric::new(settings.clone()).unwrap());
        let host = Host::new(2);
        let at = Address::new(address);
        let listening = fabrics[1].listen(&at, host.clone()).unwrap();
        Self {
            fabrics,
            host,
            listening,
        }
    }

    fn connect(&self) -> [Arc<dyn Link>; 2] {
        let at = self.listening.address();
        let a = self.fabrics[0].connect(&at, &client(1), LIMIT).unwrap();
        [a, self.host.next_link()]
    }
}

/// Receives packets numbered from 1 on until there are so many, each with the right bytes.
fn receive_all(link: &Arc<dyn Link>, lengths: &[usize]) {
    let mut received = 0;
    while received < lengths.len() {
        for event in next_events(link) {
            match event {
                Event::Packet(bytes) => {
                    assert!(*bytes == packet(received as u64 + 1, lengths[received]));
                    received += 1;
                }
                Event::Room => {}
                Event::Closed(e) => panic!("{e} after {received}"),
            }
        }
    }
}

#[test]
fn packets_of_all_lengths_arrive_whole_and_in_order() {
    limited(|| {
        let pair = Pair::new(settings());
        let ends = pair.connect();
        let mut lengths: Vec<usize> = (1..200).collect();
        lengths.extend([70_000, 1, 17 << 20, 3, 65_536, 1 << 20, 65_496, 4096]);
        lengths.extend((0..200).map(|n| 1 + n * 517));
        std::thread::scope(|scope| {
            for end in [0, 1] {
                let (ends, lengths) = (&ends, &lengths);
                scope.spawn(move || {
                    for (at, length) in lengths.iter().enumerate() {
                        let packet = packet(at as u64 + 1, *length);
                        send_patiently(&ends[end], &packet).unwrap();
                    }
                });
                scope.spawn(move || receive_all(&ends[1 - end], lengths));
            }
        });
    });
}

#[test]
fn both_ends_know_whom_they_talk_to() {
    limited(|| {
        let pair = Pair::new(settings());
        let at = pair.listening.address();
        let me = server(1, Role::PeerControl);
        let a = pair.fabrics[0].connect(&at, &me, LIMIT).unwrap();
        let b = pair.host.next_link();
        assert_eq!(a.peer(), server(2, Role::PeerControl));
        assert_eq!(b.peer(), me);
        let [a, b] = pair.connect();
        assert_eq!(a.peer().member.process, member(2).process);
        assert_eq!(b.peer(), client(1));
        assert_eq!(pair.fabrics[0].counts().linked.get(), 2);
    });
}

#[test]
fn a_peer_that_reads_nothing_makes_the_window_full_and_then_there_is_room() {
    limited(|| {
        let pair = Pair::new(settings());
        let [a, b] = pair.connect();
        let mut sent = 0;
        let mut fill = || loop {
            match send(&a, &packet(sent + 1, 60_000)) {
                Ok(()) => sent += 1,
                Err(e) => break e,
            }
            assert!(sent < 10_000, "no window");
        };
        // The kernel may take more than it did at first: then there is room, and the window fills once more.
        let mut events = Vec::new();
        loop {
            let busy = fill();
            assert_eq!(busy.kind(), ErrorKind::Busy);
            a.poll(&mut events, Duration::from_millis(50)).unwrap();
            match events[..] {
                [] => break,
                [Event::Room] => events.clear(),
                _ => panic!("{events:?}"),
            }
        }
        let reader = std::thread::spawn({
            let b = b.clone();
            move || receive_all(&b, &vec![60_000; sent as usize])
        });
        let events = next_events(&a);
        assert!(matches!(events[..], [Event::Room]), "{events:?}");
        reader.join().unwrap();
        send(&a, &packet(sent + 1, 60_000)).unwrap();
    });
}

#[test]
fn a_link_whose_peer_takes_nothing_ends_when_its_time_is_over() {
    limited(|| {
        let pair = Pair::new(TcpSettings {
            unacknowledged_ms: 500,
            ..settings()
        });
        let [a, _b] = pair.connect();
        let mut sent = 0;
        until("the link ends", || {
            match send(&a, &packet(sent + 1, 60_000)) {
                Ok(()) => sent += 1,
                Err(error) if error.kind() == ErrorKind::Busy => {}
                Err(_) => return true,
            }
            false
        });
    });
}

#[test]
fn what_was_sent_before_a_close_arrives_at_one_that_reads() {
    limited(|| {
        let pair = Pair::new(TcpSettings {
            linger_ms: 60_000,
            ..settings()
        });
        let [a, b] = pair.connect();
        let mut sent = 0;
        while send(&a, &packet(sent + 1, 50_000)).is_ok() {
            sent += 1;
        }
        a.close("enough");
        let refused = send(&a, &packet(sent + 1, 1)).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Closed);
        let (arrived, error) = until_closed(&b);
        assert_eq!(error.kind(), ErrorKind::Closed, "{error}");
        assert_eq!(arrived, (1..=sent).collect::<Vec<_>>());
        let (none, error) = until_closed(&a);
        assert!(none.is_empty() && error.to_string().contains("enough"));
        assert_eq!(poll_now(&a).unwrap_err().kind(), ErrorKind::Closed);
    });
}

#[test]
fn both_ends_close_with_packets_under_way_and_each_has_a_prefix() {
    limited(|| {
        let pair = Pair::new(settings());
        for round in 0..80 {
            let ends = pair.connect();
            std::thread::scope(|scope| {
                for end in [0, 1] {
                    let link = &ends[end];
                    scope.spawn(move || {
                        (1..).find(|n| send_patiently(link, &packet(*n, 30_000)).is_err());
                    });
                    scope.spawn(move || {
                        let (arrived, _) = until_closed(link);
                        assert!(arrived.iter().copied().eq(1..=arrived.len() as u64));
                    });
                }
                std::thread::sleep(Duration::from_micros(100 * round));
                ends[round as usize % 2].close("first");
                ends[1 - round as usize % 2].close("second");
            });
        }
        // Nobody took a part of a packet for the start of one.
        for fabric in &pair.fabrics {
            assert_eq!(fabric.counts().violations.total(), 0);
        }
    });
}

#[test]
fn threads_that_send_at_once_keep_their_order() {
    limited(|| {
        const THREADS: u64 = 8;
        const PACKETS: u64 = 3000;
        let pair = Pair::new(settings());
        let [a, b] = pair.connect();
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                let a = &a;
                scope.spawn(move || {
                    for n in 0..PACKETS {
                        let length = if n % 97 == 0 { 40_000 } else { 1 + n % 60 };
                        let packet = packet(1 + thread * PACKETS + n, length as usize);
                        send_patiently(a, &packet).unwrap();
                    }
                });
            }
            let mut next = [0; THREADS as usize];
            while next.iter().sum::<u64>() < THREADS * PACKETS {
                for event in next_events(&b) {
                    let Event::Packet(bytes) = event else {
                        panic!("{event:?}");
                    };
                    let number = number_of(&bytes) - 1;
                    let thread = (number / PACKETS) as usize;
                    assert_eq!(number % PACKETS, next[thread]);
                    next[thread] += 1;
                }
            }
        });
    });
}

#[test]
fn questions_and_answers_follow_each_other() {
    limited(|| {
        let pair = Pair::new(settings());
        let [a, b] = pair.connect();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for n in 1..=2000 {
                    receive_one(&b, n);
                    send(&b, &packet(n, 20)).unwrap();
                }
            });
            for n in 1..=2000 {
                send(&a, &packet(n, 20)).unwrap();
                receive_one(&a, n);
            }
        });
    });
}

fn receive_one(link: &Arc<dyn Link>, number: u64) {
    let events = next_events(link);
    match &events[..] {
        [Event::Packet(bytes)] => assert_eq!(number_of(bytes), number),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_poll_waits_no_longer_than_it_may_and_a_close_wakes_it() {
    limited(|| {
        let pair = Pair::new(settings());
        let [a, _b] = pair.connect();
        let start = Instant::now();
        let mut events = Vec::new();
        a.poll(&mut events, Duration::from_millis(30)).unwrap();
        assert!(events.is_empty() && start.elapsed() >= Duration::from_millis(29));
        std::thread::scope(|scope| {
            let first = scope.spawn(|| until_closed(&a).1);
            std::thread::sleep(Duration::from_millis(20));
            // The second waits for its turn, and for no longer than it may.
            a.poll(&mut events, Duration::from_millis(10)).unwrap();
            a.close("woken");
            assert!(first.join().unwrap().to_string().contains("woken"));
        });
    });
}

#[test]
fn the_last_handle_closes_the_link() {
    limited(|| {
        let pair = Pair::new(settings());
        let [a, b] = pair.connect();
        send(&a, &packet(1, 5)).unwrap();
        drop(a);
        let (arrived, error) = until_closed(&b);
        assert_eq!((arrived, error.kind()), (vec![1], ErrorKind::Closed));
    });
}

#[test]
fn a_fabric_that_is_dropped_closes_its_links() {
    limited(|| {
        let pair = Pair::new(settings());
        let [a, b] = pair.connect();
        let Pair { fabrics, .. } = pair;
        let [first, _second] = fabrics;
        drop(first);
        assert_eq!(until_closed(&b).1.kind(), ErrorKind::Closed);
        assert!(send(&a, &packet(1, 1)).is_err());
        assert!(until_closed(&a).1.to_string().contains("dropped"));
    });
}

#[test]
fn a_refusal_is_told_with_its_reason() {
    limited(|| {
        let pair = Pair::new(settings());
        *pair.host.verdict.lock().unwrap() = Err(Reason::NotInSet);
        let at = pair.listening.address();
        let refused = pair.fabrics[0].connect(&at, &client(1), LIMIT);
        let error = refused.err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Closed);
        assert!(error.to_string().contains("NotInSet"), "{error}");
        assert_eq!(pair.fabrics[1].counts().refused.get(), 1);
    });
}

#[test]
fn more_links_than_allowed_are_refused_as_busy() {
    limited(|| {
        let pair = Pair::new(TcpSettings {
            links_max: 1,
            ..settings()
        });
        let [a, b] = pair.connect();
        let at = pair.listening.address();
        let error = pair.fabrics[0].connect(&at, &client(1), LIMIT).err();
        assert!(error.unwrap().to_string().contains("Busy"));
        assert_eq!(pair.fabrics[1].counts().over_limit.get(), 1);
        drop((a, b));
        until("there is room", || {
            pair.fabrics[0].connect(&at, &client(1), LIMIT).is_ok()
        });
    });
}

#[test]
fn connecting_takes_no_longer_than_it_may() {
    limited(|| {
        let fabric = TcpFabric::new(settings()).unwrap();
        // It accepts, in the kernel, and says nothing. No other test gets its port later: none has this address.
        let silent = TcpListener::bind("127.0.0.2:0").unwrap();
        let at = Address::new(&silent.local_addr().unwrap().to_string());
        let start = Instant::now();
        let limit = Duration::from_millis(100);
        let error = fabric.connect(&at, &client(1), limit).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Io, "{error}");
        assert!(start.elapsed() >= limit);
        drop(silent);
        let error = fabric.connect(&at, &client(1), LIMIT).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Io, "{error}");
    });
}

#[test]
fn without_a_key_only_loopback_is_used() {
    limited(|| {
        let pair = Pair::new(TcpSettings::new("tests", None));
        let [a, b] = pair.connect();
        send(&a, &packet(1, 1)).unwrap();
        receive_one(&b, 1);
        let far = Address::new("0.0.0.0:0");
        let error = pair.fabrics[0].listen(&far, pair.host.clone()).err();
        assert_eq!(error.unwrap().kind(), ErrorKind::InvalidArgument);
        let far = Address::new("192.0.2.1:7400");
        let error = pair.fabrics[0].connect(&far, &client(1), LIMIT).err();
        assert!(error.unwrap().to_string().contains("without a key"));
    });
}

#[test]
fn an_address_is_listened_on_once_and_again_when_it_is_free() {
    limited(|| {
        // No other test gets this port in between: none has this address.
        let pair = Pair::at("127.0.0.3:0", settings());
        let at = pair.listening.address();
        let twice = pair.fabrics[0].listen(&at, pair.host.clone());
        assert_eq!(twice.err().unwrap().kind(), ErrorKind::Busy);
        let ends = pair.connect();
        let Pair {
            fabrics,
            host,
            listening,
        } = pair;
        drop(listening);
        assert!(fabrics[0].connect(&at, &client(1), LIMIT).is_err());
        let _listening = fabrics[1].listen(&at, host.clone()).unwrap();
        assert!(fabrics[0].connect(&at, &client(1), LIMIT).is_ok());
        // The links of before live on.
        send(&ends[0], &packet(1, 1)).unwrap();
        receive_one(&ends[1], 1);
    });
}

#[test]
fn settings_outside_their_range_are_refused() {
    for wrong in [
        TcpSettings::new("", None),
        TcpSettings::new(&"x".repeat(65), None),
        TcpSettings::new("a\nb", None),
        TcpSettings {
            window_bytes: 100,
            ..settings()
        },
        TcpSettings {
            unproven_max: 0,
            ..settings()
        },
        TcpSettings {
            proof_ms: 0,
            ..settings()
        },
        TcpSettings {
            unacknowledged_ms: 99,
            ..settings()
        },
    ] {
        let error = TcpFabric::new(wrong).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    }
}
