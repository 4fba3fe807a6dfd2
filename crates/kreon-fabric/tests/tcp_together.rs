//! TCP on loopback: packets that one thread sends in a row leave together, and in order.

mod common;

use std::sync::Arc;

use common::*;
use kreon_base::ErrorKind;
use kreon_fabric::tcp::{TcpFabric, TcpSettings};
use kreon_fabric::{Address, Event, Fabric, Link, Listening, Together};

/// Two processes and a link of a client between them.
struct Pair {
    _fabrics: [TcpFabric; 2],
    _listening: Box<dyn Listening>,
    ends: [Arc<dyn Link>; 2],
}

impl Pair {
    fn new() -> Self {
        let settings = TcpSettings::new("tests", None);
        let fabrics = [0, 1].map(|_| TcpFabric::new(settings.clone()).unwrap());
        let host = Host::new(2);
        let at = Address::new("127.0.0.1:0");
        let listening = fabrics[1].listen(&at, host.clone()).unwrap();
        let link = fabrics[0].connect(&listening.address(), &client(1), LIMIT);
        let ends = [link.unwrap(), host.next_link()];
        Self {
            _fabrics: fabrics,
            _listening: listening,
            ends,
        }
    }
}

/// The numbers of the next packets, `count` of them.
fn receive(link: &Arc<dyn Link>, count: usize) -> Vec<u64> {
    let mut numbers = Vec::new();
    while numbers.len() < count {
        for event in next_events(link) {
            match event {
                Event::Packet(bytes) => numbers.push(number_of(&bytes)),
                Event::Room => {}
                Event::Closed(e) => panic!("{e} after {numbers:?}"),
            }
        }
    }
    numbers
}

#[test]
fn what_is_sent_together_leaves_at_the_end_and_keeps_its_order() {
    limited(|| {
        let pair = Pair::new();
        send(&pair.ends[0], &packet(1, 100)).unwrap();
        assert_eq!(receive(&pair.ends[1], 1), [1]);
        let together = Together::begin();
        for number in 2..10 {
            send(&pair.ends[0], &packet(number, 100)).unwrap();
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
        assert!(poll_now(&pair.ends[1]).unwrap().is_empty());
        drop(together);
        assert_eq!(receive(&pair.ends[1], 8), (2..10).collect::<Vec<_>>());
    });
}

#[test]
fn much_and_long_packets_do_not_wait_for_the_end() {
    limited(|| {
        let pair = Pair::new();
        let together = Together::begin();
        for number in 1..=200 {
            let body_bytes = if number % 50 == 49 { 200_000 } else { 1000 };
            send_patiently(&pair.ends[0], &packet(number, body_bytes)).unwrap();
        }
        // Most have left, with those that are too long to wait.
        let mut numbers = receive(&pair.ends[1], 150);
        drop(together);
        while numbers.len() < 200 {
            numbers.extend(receive(&pair.ends[1], 1));
        }
        assert!(numbers.into_iter().eq(1..=200));
    });
}

#[test]
fn another_threads_packets_take_along_what_is_held() {
    limited(|| {
        let pair = Pair::new();
        let together = Together::begin();
        send(&pair.ends[0], &packet(1, 100)).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| send(&pair.ends[0], &packet(2, 100)).unwrap());
        });
        assert_eq!(receive(&pair.ends[1], 2), [1, 2]);
        drop(together);
    });
}

#[test]
fn a_link_that_is_closed_sends_what_was_held_before() {
    limited(|| {
        let pair = Pair::new();
        let together = Together::begin();
        send(&pair.ends[0], &packet(1, 100)).unwrap();
        pair.ends[0].close("enough");
        assert_eq!(receive(&pair.ends[1], 1), [1]);
        let error = send(&pair.ends[0], &packet(2, 100)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Closed);
        drop(together);
    });
}
