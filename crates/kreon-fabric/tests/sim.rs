//! The simulated network.

mod common;

use std::sync::Arc;
use std::time::Duration;

use common::*;
use kreon_base::{ErrorKind, Result};
use kreon_fabric::sim::{Delivery, End, LinkId, Sim, SimSettings};
use kreon_fabric::{Address, Event, Fabric, Link, Listening};
use kreon_wire::{Reason, Role};

const BY_HAND: SimSettings = SimSettings {
    delivery: Delivery::ByHand,
    window_bytes: 1 << 20,
    is_parking: false,
    is_close_orderly: true,
};

fn at(name: &str) -> Address {
    Address::new(name)
}

/// Servers `a` and `b`; `b` listens.
struct Pair {
    sim: Sim,
    host: Arc<Host>,
    _listening: Box<dyn Listening>,
}

impl Pair {
    fn new(seed: u64, settings: SimSettings) -> Self {
        let sim = Sim::new(seed, settings);
        let host = Host::new(2);
        let listening = sim.host(&at("b")).listen(&at("b:1"), host.clone()).unwrap();
        Self {
            sim,
            host,
            _listening: listening,
        }
    }

    fn try_connect(&self) -> Result<Arc<dyn Link>> {
        let fabric = self.sim.host(&at("a"));
        fabric.connect(&at("b:1"), &client(1), Duration::from_secs(1))
    }

    fn connect(&self) -> (LinkId, [Arc<dyn Link>; 2]) {
        let a = self.try_connect().unwrap();
        let b = self.host.next_link();
        (self.sim.links().last().unwrap().id, [a, b])
    }
}

fn numbers(events: Vec<Event>) -> Vec<u64> {
    let number = |event| match event {
        Event::Packet(bytes) => number_of(&bytes),
        other => panic!("{other:?}"),
    };
    events.into_iter().map(number).collect()
}

#[test]
fn a_packet_arrives_when_time_has_passed_and_not_before() {
    let settings = SimSettings {
        delivery: Delivery::After {
            us_min: 100,
            us_max: 100,
        },
        ..BY_HAND
    };
    let pair = Pair::new(1, settings);
    let (_, [a, b]) = pair.connect();
    send(&a, &packet(1, 10)).unwrap();
    pair.sim.advance_to(99);
    assert!(poll_now(&b).unwrap().is_empty());
    assert_eq!(pair.sim.next_due_us(), Some(100));
    assert!(pair.sim.step());
    assert_eq!(numbers(poll_now(&b).unwrap()), [1]);
    assert!(!pair.sim.step());
}

#[test]
fn links_overtake_each_other_and_packets_of_a_link_do_not() {
    let settings = SimSettings {
        delivery: Delivery::After {
            us_min: 0,
            us_max: 1000,
        },
        ..BY_HAND
    };
    let mut overtaken = 0;
    for seed in 0..20 {
        let pair = Pair::new(seed, settings);
        let links = [pair.connect().1, pair.connect().1];
        for number in 1..=20 {
            send(&links[number as usize % 2][0], &packet(number, 1)).unwrap();
        }
        let mut arrived = Vec::new();
        while pair.sim.step() {
            let polled = links.iter().map(|[_, b]| numbers(poll_now(b).unwrap()));
            arrived.extend(polled.flatten());
        }
        for rest in [0, 1] {
            let of_link: Vec<u64> = arrived.iter().copied().filter(|n| n % 2 == rest).collect();
            assert!(of_link.is_sorted() && of_link.len() == 10, "{of_link:?}");
        }
        overtaken += u32::from(!arrived.is_sorted());
    }
    assert!(overtaken > 10, "{overtaken} of 20");
}

#[test]
fn one_direction_stalls_and_goes_on() {
    let pair = Pair::new(1, SimSettings::default());
    let (link, [a, b]) = pair.connect();
    pair.sim.stall(link, End::Connector, true);
    send(&a, &packet(1, 1)).unwrap();
    send(&b, &packet(2, 1)).unwrap();
    while pair.sim.step() {}
    pair.sim.advance_to(1_000_000);
    assert!(poll_now(&b).unwrap().is_empty());
    assert_eq!(numbers(poll_now(&a).unwrap()), [2]);
    pair.sim.stall(link, End::Connector, false);
    assert_eq!(numbers(poll_now(&b).unwrap()), [1]);
}

#[test]
fn servers_that_are_apart_hear_nothing_and_do_not_connect() {
    let pair = Pair::new(1, SimSettings::default());
    let (_, [a, b]) = pair.connect();
    pair.sim.drop_between(&at("b"), &at("a"), true);
    send(&a, &packet(1, 1)).unwrap();
    send(&b, &packet(2, 1)).unwrap();
    while pair.sim.step() {}
    assert_eq!(numbers(poll_now(&b).unwrap()), [1]);
    assert!(poll_now(&a).unwrap().is_empty());
    assert_eq!(pair.try_connect().err().unwrap().kind(), ErrorKind::Io);
    pair.sim.drop_between(&at("b"), &at("a"), false);
    pair.sim.advance_to(1000);
    assert_eq!(numbers(poll_now(&a).unwrap()), [2]);
    assert!(pair.try_connect().is_ok());
}

#[test]
fn a_cut_leaves_the_prefix_that_was_asked_for() {
    let pair = Pair::new(1, BY_HAND);
    let (link, [a, b]) = pair.connect();
    (1..=5).for_each(|n| send(&a, &packet(n, 9)).unwrap());
    (1..=3).for_each(|n| send(&b, &packet(n, 9)).unwrap());
    assert!(pair.sim.deliver(link, End::Connector));
    pair.sim.cut(link, [2, 0]);
    let (of_a, error) = until_closed(&b);
    assert_eq!((of_a, error.kind()), (vec![1, 2, 3], ErrorKind::Io));
    let (of_b, error) = until_closed(&a);
    assert_eq!((of_b, error.kind()), (vec![], ErrorKind::Io));
    assert_eq!(send(&a, &packet(6, 1)).unwrap_err().kind(), ErrorKind::Io);
    assert_eq!(poll_now(&b).unwrap_err().kind(), ErrorKind::Io);
}

#[test]
fn a_full_window_is_busy_until_the_receiver_polls() {
    let settings = SimSettings {
        window_bytes: 1000,
        ..BY_HAND
    };
    let pair = Pair::new(1, settings);
    let (link, [a, b]) = pair.connect();
    send(&a, &packet(1, 5000)).unwrap();
    let busy = send(&a, &packet(2, 1)).unwrap_err();
    assert_eq!(busy.kind(), ErrorKind::Busy);
    pair.sim.deliver(link, End::Connector);
    assert!(poll_now(&a).unwrap().is_empty(), "not polled yet");
    assert_eq!(numbers(poll_now(&b).unwrap()), [1]);
    let events = poll_now(&a).unwrap();
    assert!(matches!(events[..], [Event::Room]), "{events:?}");
    send(&a, &packet(2, 1)).unwrap();
    assert!(poll_now(&a).unwrap().is_empty(), "told once");
}

#[test]
fn a_close_is_told_behind_what_was_sent() {
    let pair = Pair::new(1, BY_HAND);
    let (link, [a, b]) = pair.connect();
    send(&a, &packet(1, 1)).unwrap();
    send(&b, &packet(7, 1)).unwrap();
    a.close("enough");
    a.close("again");
    let (none, error) = until_closed(&a);
    assert_eq!((none.len(), error.kind()), (0, ErrorKind::Closed));
    assert!(error.to_string().contains("enough"), "{error}");
    assert!(poll_now(&b).unwrap().is_empty());
    while pair.sim.deliver(link, End::Connector) {}
    let (one, error) = until_closed(&b);
    assert_eq!((one, error.kind()), (vec![1], ErrorKind::Closed));
    let sent = send(&b, &packet(8, 1)).unwrap_err();
    assert_eq!(sent.kind(), ErrorKind::Closed);
}

#[test]
fn a_close_may_lose_what_was_under_way() {
    let settings = SimSettings {
        is_close_orderly: false,
        ..BY_HAND
    };
    let mut lengths = std::collections::BTreeSet::new();
    for seed in 0..40 {
        let pair = Pair::new(seed, settings);
        let (link, [a, b]) = pair.connect();
        (1..=3).for_each(|n| send(&a, &packet(n, 1)).unwrap());
        drop(a);
        while pair.sim.deliver(link, End::Connector) {}
        let (arrived, error) = until_closed(&b);
        assert!((1..=3).take(arrived.len()).eq(arrived.iter().copied()));
        let is_whole = arrived.len() == 3;
        assert_eq!(error.kind() == ErrorKind::Closed, is_whole, "{error}");
        lengths.insert(arrived.len());
    }
    assert_eq!(lengths.len(), 4, "every prefix was seen");
}

#[test]
fn a_refusal_is_told_with_its_reason() {
    let pair = Pair::new(1, BY_HAND);
    *pair.host.verdict.lock().unwrap() = Err(Reason::Busy);
    let error = pair.try_connect().err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Closed);
    assert!(error.to_string().contains("Busy"), "{error}");
    *pair.host.verdict.lock().unwrap() = Ok(());
    pair.sim.refuse(&at("b:1"), true);
    assert_eq!(pair.try_connect().err().unwrap().kind(), ErrorKind::Io);
    pair.sim.refuse(&at("b:1"), false);
    assert_eq!(pair.connect().1[0].peer().member.process, member(2).process);
}

#[test]
fn a_doubled_attempt_is_a_link_to_nobody() {
    let mut firsts = 0;
    for seed in 0..20 {
        let pair = Pair::new(seed, BY_HAND);
        pair.sim.double_next(&at("b:1"));
        let a = pair.try_connect().unwrap();
        let links = pair.host.take_links();
        assert_eq!(links.len(), 2);
        send(&a, &packet(1, 1)).unwrap();
        for info in pair.sim.links() {
            pair.sim.deliver(info.id, End::Connector);
        }
        let arrived: Vec<usize> = links.iter().map(|b| poll_now(b).unwrap().len()).collect();
        assert_eq!(arrived.iter().sum::<usize>(), 1);
        firsts += arrived[0];
    }
    assert!((1..20).contains(&firsts), "{firsts} of 20");
}

#[test]
fn a_crashed_server_is_gone_until_it_listens_again() {
    let pair = Pair::new(1, BY_HAND);
    let (_, [a, b]) = pair.connect();
    pair.sim.crash(&at("b"));
    assert_eq!(until_closed(&a).1.kind(), ErrorKind::Io);
    assert_eq!(until_closed(&b).1.kind(), ErrorKind::Io);
    assert_eq!(pair.try_connect().err().unwrap().kind(), ErrorKind::Io);
    let fabric = pair.sim.host(&at("b"));
    let _listening = fabric.listen(&at("b:1"), pair.host.clone()).unwrap();
    assert!(pair.try_connect().is_ok());
}

#[test]
fn an_address_is_listened_on_once() {
    let pair = Pair::new(1, BY_HAND);
    let again = |pair: &Pair| {
        let fabric = pair.sim.host(&at("b"));
        fabric.listen(&at("b:1"), pair.host.clone())
    };
    let twice = again(&pair).err().unwrap();
    assert_eq!(twice.kind(), ErrorKind::Busy);
    let Pair {
        sim,
        host,
        _listening,
    } = pair;
    drop(_listening);
    let fabric = sim.host(&at("b"));
    assert!(fabric.listen(&at("b:1"), host).is_ok());
}

#[test]
fn only_packets_of_the_role_are_sent() {
    let pair = Pair::new(1, BY_HAND);
    let fabric = pair.sim.host(&at("a"));
    let me = server(1, Role::PeerControl);
    let link = fabric.connect(&at("b:1"), &me, LIMIT).unwrap();
    let refused = send(&link, &packet(1, 10)).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidArgument);
    let (_, [a, _b]) = pair.connect();
    let mut long = packet(1, 10);
    long.push(0);
    for wrong in [&long[..], &long[..49], &long[..39], &[]] {
        let refused = send(&a, wrong).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::InvalidArgument);
    }
    send(&a, &long[..50]).unwrap();
}

#[test]
fn a_thread_waits_for_a_packet_and_no_longer_than_it_may() {
    let settings = SimSettings {
        delivery: Delivery::After {
            us_min: 0,
            us_max: 0,
        },
        is_parking: true,
        ..BY_HAND
    };
    let pair = Pair::new(1, settings);
    let (_, [a, b]) = pair.connect();
    let mut events = Vec::new();
    b.poll(&mut events, Duration::from_millis(5)).unwrap();
    assert!(events.is_empty());
    std::thread::scope(|scope| {
        let receiver = scope.spawn(|| numbers(next_events(&b)));
        std::thread::sleep(Duration::from_millis(5));
        send(&a, &packet(3, 1)).unwrap();
        assert_eq!(receiver.join().unwrap(), [3]);
    });
}
