//! Many links that one thread serves, of both fabrics.

mod common;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use common::*;
use kreon_base::ErrorKind;
use kreon_fabric::sim::{Delivery, Sim, SimSettings};
use kreon_fabric::tcp::{TcpFabric, TcpSettings};
use kreon_fabric::{Address, Event, Fabric, Gathering, Key, Link, LinkName, Listening};

const LINKS: u64 = 100;
const PACKETS: u64 = 50;

/// Somebody who connects, and a server that gathers.
struct Scene {
    outside: Box<dyn Fabric>,
    server: Box<dyn Fabric>,
    host: Arc<Host>,
    listening: Box<dyn Listening>,
}

impl Scene {
    fn new([outside, server]: [Box<dyn Fabric>; 2], at: &str) -> Self {
        let host = Host::new(2);
        let listening = server.listen(&Address::new(at), host.clone()).unwrap();
        Self {
            outside,
            server,
            host,
            listening,
        }
    }

    fn tcp() -> Self {
        let settings = TcpSettings {
            proof_ms: 60_000,
            linger_ms: 60_000,
            ..TcpSettings::new("tests", Some(Key::new(b"a key of the tests").unwrap()))
        };
        let fabric = || Box::new(TcpFabric::new(settings.clone()).unwrap());
        Self::new([fabric(), fabric()], "127.0.0.1:0")
    }

    fn sim() -> Self {
        let settings = SimSettings {
            delivery: Delivery::After {
                us_min: 0,
                us_max: 0,
            },
            window_bytes: 1 << 20,
            is_parking: true,
            is_close_orderly: true,
        };
        let sim = Sim::new(1, settings);
        let fabric = |name| Box::new(sim.host(&Address::new(name)));
        Self::new([fabric("a"), fabric("b")], "b:1")
    }

    fn connect(&self) -> [Arc<dyn Link>; 2] {
        let at = self.listening.address();
        let a = self.outside.connect(&at, &client(1), LIMIT).unwrap();
        [a, self.host.next_link()]
    }

    fn gathering(&self) -> Arc<dyn Gathering> {
        self.server.gathering().unwrap()
    }
}

fn with_both(test: fn(&Scene)) {
    limited(move || test(&Scene::sim()));
    limited(move || test(&Scene::tcp()));
}

/// Polls until there is an event.
fn next_of(gathering: &Arc<dyn Gathering>) -> Vec<(LinkName, Event)> {
    let (mut waiting, mut events) = (Waiting::new("an event of a link"), Vec::new());
    while events.is_empty() {
        waiting.look();
        let patience = Duration::from_millis(100);
        gathering.poll(&mut events, patience).unwrap();
    }
    events
}

fn silence(gathering: &Arc<dyn Gathering>) {
    let mut events = Vec::new();
    for _ in 0..3 {
        let patience = Duration::from_millis(2);
        gathering.poll(&mut events, patience).unwrap();
    }
    assert!(events.is_empty(), "{events:?}");
}

#[test]
fn one_thread_hears_a_hundred_links_each_in_its_order_and_to_its_end() {
    with_both(|scene| {
        let gathering = scene.gathering();
        let links: Vec<_> = (0..LINKS).map(|_| scene.connect()).collect();
        let (senders, receivers): (Vec<_>, Vec<_>) = links.into_iter().map(<_>::from).unzip();
        // Some have sent before they are gathered, and some connect with their packets behind the proof.
        for (name, (sender, link)) in (0..).zip(senders.iter().zip(receivers)) {
            if name % 2 == 0 {
                send(sender, &packet(1, 100)).unwrap();
            }
            gathering.add(LinkName(name), link).unwrap();
        }
        std::thread::scope(|scope| {
            scope.spawn(move || {
                for number in 1..=PACKETS {
                    for (name, sender) in senders.iter().enumerate() {
                        if number > 1 || name % 2 == 1 {
                            let bytes = 1 + (number as usize * 991 + name * 37) % 5000;
                            send_patiently(sender, &packet(number, bytes)).unwrap();
                        }
                    }
                }
            });
            let mut arrived: BTreeMap<LinkName, u64> = BTreeMap::new();
            let mut closed = 0;
            while closed < LINKS {
                for (name, event) in next_of(&gathering) {
                    let count = arrived.entry(name).or_default();
                    match event {
                        Event::Packet(bytes) => {
                            *count += 1;
                            assert_eq!(number_of(&bytes), *count, "{name:?}");
                        }
                        Event::Room => panic!("nothing was sent"),
                        Event::Closed(error) => {
                            assert_eq!((*count, error.kind()), (PACKETS, ErrorKind::Closed));
                            closed += 1;
                        }
                    }
                }
            }
            assert_eq!(arrived.len() as u64, LINKS);
            silence(&gathering);
        });
    });
}

#[test]
fn a_link_is_told_of_room_and_of_its_own_close() {
    with_both(|scene| {
        let gathering = scene.gathering();
        let [outside, link] = scene.connect();
        let [_other, quiet] = scene.connect();
        gathering.add(LinkName(7), link.clone()).unwrap();
        gathering.add(LinkName(8), quiet).unwrap();
        let mut sent = 0;
        while send(&link, &packet(sent + 1, 60_000)).is_ok() {
            sent += 1;
        }
        let reader = std::thread::spawn(move || {
            let mut numbers = Vec::new();
            while !matches!(numbers.last(), Some(last) if *last == sent) {
                for event in next_events(&outside) {
                    let Event::Packet(bytes) = event else {
                        panic!("{event:?}");
                    };
                    numbers.push(number_of(&bytes));
                }
            }
            (outside, numbers)
        });
        let events = next_of(&gathering);
        assert!(
            matches!(events[..], [(LinkName(7), Event::Room)]),
            "{events:?}"
        );
        let (_outside, numbers) = reader.join().unwrap();
        assert!(numbers.into_iter().eq(1..=sent));
        link.close("enough");
        let events = next_of(&gathering);
        match &events[..] {
            [(LinkName(7), Event::Closed(error))] => assert!(error.to_string().contains("enough")),
            other => panic!("{other:?}"),
        }
        silence(&gathering);
    });
}

#[test]
fn a_poll_under_way_hears_of_a_new_link_and_is_woken() {
    with_both(|scene| {
        let gathering = scene.gathering();
        let [outside, link] = scene.connect();
        std::thread::scope(|scope| {
            let hears = scope.spawn(|| next_of(&gathering));
            send(&outside, &packet(1, 10)).unwrap();
            gathering.add(LinkName(3), link).unwrap();
            let events = hears.join().unwrap();
            assert!(matches!(events[..], [(LinkName(3), Event::Packet(_))]));
            // Nothing else ends so long a poll in time.
            let waits = scope.spawn(|| gathering.poll(&mut Vec::new(), Duration::from_secs(3600)));
            gathering.wake();
            waits.join().unwrap().unwrap();
        });
    });
}

#[test]
fn a_link_that_is_removed_is_heard_no_more_and_ends_with_its_last_handle() {
    with_both(|scene| {
        let gathering = scene.gathering();
        let [outside, link] = scene.connect();
        gathering.add(LinkName(1), link.clone()).unwrap();
        let twice = [
            gathering.add(LinkName(1), scene.connect()[1].clone()),
            gathering.add(LinkName(2), link.clone()),
        ];
        for error in twice.map(Result::unwrap_err) {
            assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        }
        gathering.remove(LinkName(1));
        send(&outside, &packet(1, 10)).unwrap();
        silence(&gathering);
        gathering.add(LinkName(2), link).unwrap();
        let events = next_of(&gathering);
        assert!(matches!(events[..], [(LinkName(2), Event::Packet(_))]));
        gathering.remove(LinkName(2));
        assert_eq!(until_closed(&outside).1.kind(), ErrorKind::Closed);
    });
}

#[test]
fn a_link_that_has_told_its_end_before_tells_it_to_the_gathering() {
    with_both(|scene| {
        let gathering = scene.gathering();
        let [outside, link] = scene.connect();
        drop(outside);
        until_closed(&link);
        gathering.add(LinkName(1), link).unwrap();
        let events = next_of(&gathering);
        assert!(matches!(events[..], [(LinkName(1), Event::Closed(_))]));
    });
}

#[test]
fn a_link_of_another_fabric_is_refused() {
    limited(|| {
        let (tcp, sim) = (Scene::tcp(), Scene::sim());
        let [_outside, link] = sim.connect();
        let refused = tcp.gathering().add(LinkName(1), link).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::InvalidArgument);
        let [_outside, link] = tcp.connect();
        let refused = sim.gathering().add(LinkName(1), link).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::InvalidArgument);
    });
}
