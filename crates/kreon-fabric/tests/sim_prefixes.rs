//! Whatever is done to links, each end receives a prefix of what the other one sent.

mod common;

use std::sync::Arc;
use std::time::Duration;

use common::*;
use kreon_base::ErrorKind;
use kreon_fabric::sim::{Delivery, End, LinkId, Sim, SimSettings};
use kreon_fabric::{Address, Event, Fabric, Link};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

#[derive(Clone, Debug)]
enum Act {
    Send { from: usize, body_bytes: usize },
    Poll { end: usize },
    Deliver { from: usize },
    Stall { from: usize, is_stalled: bool },
    Apart { is_dropped: bool },
    Advance { us: u64 },
    Cut { keep: [usize; 2] },
    CutAnywhere,
    Close { end: usize },
}

fn act() -> impl Strategy<Value = Act> {
    let end = 0..2_usize;
    prop_oneof![
        30 => (end.clone(), 1..300_usize).prop_map(|(from, body_bytes)| Act::Send { from, body_bytes }),
        20 => end.clone().prop_map(|end| Act::Poll { end }),
        15 => end.clone().prop_map(|from| Act::Deliver { from }),
        10 => (0..300_u64).prop_map(|us| Act::Advance { us }),
        4 => (end.clone(), any::<bool>()).prop_map(|(from, is_stalled)| Act::Stall { from, is_stalled }),
        4 => any::<bool>().prop_map(|is_dropped| Act::Apart { is_dropped }),
        1 => (0..6_usize, 0..6_usize).prop_map(|(a, b)| Act::Cut { keep: [a, b] }),
        1 => Just(Act::CutAnywhere),
        1 => end.prop_map(|end| Act::Close { end }),
    ]
}

const WINDOW_BYTES: u32 = 2000;

/// A link, and what it must do.
struct Run {
    sim: Sim,
    link: LinkId,
    ends: [Arc<dyn Link>; 2],
    /// What each end has sent, and been given.
    sent: [Vec<Vec<u8>>; 2],
    given: [Vec<Vec<u8>>; 2],
    closed: [Option<ErrorKind>; 2],
    rooms: [usize; 2],
    busies: [usize; 2],
    is_cut: bool,
}

impl Run {
    fn new(seed: u64, delivery: Delivery) -> Self {
        let settings = SimSettings {
            delivery,
            window_bytes: WINDOW_BYTES,
            ..SimSettings::default()
        };
        let sim = Sim::new(seed, settings);
        let host = Host::new(2);
        let [a, b] = ["a", "b"].map(Address::new);
        let _listening = sim.host(&b).listen(&b, host.clone()).unwrap();
        let connected = sim.host(&a).connect(&b, &client(1), LIMIT).unwrap();
        Self {
            link: sim.links()[0].id,
            ends: [connected, host.next_link()],
            sim,
            sent: Default::default(),
            given: Default::default(),
            closed: [None; 2],
            rooms: [0; 2],
            busies: [0; 2],
            is_cut: false,
        }
    }

    fn act(&mut self, act: &Act) {
        let [a, b] = ["a", "b"].map(Address::new);
        let end_of = |end| [End::Connector, End::Acceptor][end];
        match *act {
            Act::Send { from, body_bytes } => self.send(from, body_bytes),
            Act::Poll { end } => self.poll(end),
            Act::Deliver { from } => drop(self.sim.deliver(self.link, end_of(from))),
            Act::Stall { from, is_stalled } => self.sim.stall(self.link, end_of(from), is_stalled),
            Act::Apart { is_dropped } => self.sim.drop_between(&a, &b, is_dropped),
            Act::Advance { us } => self.sim.advance_to(self.sim.now_us() + us),
            Act::Cut { keep } => self.cut(keep),
            Act::CutAnywhere => {
                self.sim.cut_anywhere(self.link);
                self.is_cut = true;
            }
            Act::Close { end } => {
                self.ends[end].close("done");
                self.is_cut = true;
            }
        }
    }

    fn send(&mut self, from: usize, body_bytes: usize) {
        let bytes = packet(self.sent[from].len() as u64 + 1, body_bytes);
        let mut parts = vec![std::io::IoSlice::new(&bytes[..40])];
        parts.push(std::io::IoSlice::new(&bytes[40..]));
        match self.ends[from].send(&parts) {
            Ok(()) => self.sent[from].push(bytes),
            Err(e) if e.kind() == ErrorKind::Busy => self.busies[from] += 1,
            Err(_) => assert!(self.is_cut),
        }
        let unpolled = self.sent[from].len() - self.given[1 - from].len();
        let held_bytes = self.sent[from].iter().rev().take(unpolled).map(Vec::len);
        assert!(self.is_cut || held_bytes.sum::<usize>() <= WINDOW_BYTES as usize);
    }

    fn poll(&mut self, end: usize) {
        let mut events = Vec::new();
        if let Err(error) = self.ends[end].poll(&mut events, Duration::ZERO) {
            assert_eq!(self.closed[end], Some(error.kind()));
        }
        for event in events {
            assert_eq!(self.closed[end], None, "nothing follows the end");
            match event {
                Event::Packet(bytes) => self.given[end].push(bytes.to_vec()),
                Event::Room => self.rooms[end] += 1,
                Event::Closed(error) => self.closed[end] = Some(error.kind()),
            }
        }
        let (given, sent) = (&self.given[end], &self.sent[1 - end]);
        assert_eq!(given[..], sent[..given.len()], "a prefix");
        assert!(self.rooms[end] <= self.busies[end]);
    }

    /// Of the packets under way, exactly so many arrive.
    fn cut(&mut self, keep: [usize; 2]) {
        (0..2).for_each(|end| self.poll(end));
        let were_given = [1, 0].map(|end: usize| self.given[end].len());
        let under_way = self.sim.links()[0].packets;
        self.sim.cut(self.link, keep);
        if !self.is_cut {
            (0..2).for_each(|end| self.poll(end));
            for from in 0..2 {
                let arrived = self.given[1 - from].len() - were_given[from];
                assert_eq!(arrived, keep[from].min(under_way[from]));
                assert_eq!(self.closed[from], Some(ErrorKind::Io));
            }
        }
        self.is_cut = true;
    }

    /// Without a cut, everything arrives in the end.
    fn finish(&mut self) {
        let [a, b] = ["a", "b"].map(Address::new);
        self.sim.drop_between(&a, &b, false);
        for from in [End::Connector, End::Acceptor] {
            self.sim.stall(self.link, from, false);
            while self.sim.deliver(self.link, from) {}
        }
        (0..2).for_each(|end| self.poll(end));
        if !self.is_cut {
            for end in 0..2 {
                assert_eq!(self.given[end].len(), self.sent[1 - end].len());
                assert_eq!(self.closed[end], None);
            }
        }
    }

    fn outcome(&self) -> String {
        let given = self.given.iter().map(Vec::len).collect::<Vec<_>>();
        format!("{given:?} {:?} {:?}", self.closed, self.rooms)
    }
}

fn run(seed: u64, delivery: Delivery, acts: &[Act]) -> String {
    let mut run = Run::new(seed, delivery);
    let mut outcomes = String::new();
    for act in acts {
        run.act(act);
        outcomes += &run.outcome();
    }
    run.finish();
    outcomes + &run.outcome()
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 300,
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(0x006b_7265_6f6e),
        ..ProptestConfig::default()
    })]

    #[test]
    fn every_end_receives_a_prefix(
        seed in any::<u64>(),
        is_by_hand in any::<bool>(),
        acts in prop::collection::vec(act(), 1..120),
    ) {
        let delivery = match is_by_hand {
            true => Delivery::ByHand,
            false => Delivery::After { us_min: 0, us_max: 200 },
        };
        let first = run(seed, delivery, &acts);
        prop_assert_eq!(first, run(seed, delivery, &acts), "everything follows from seed and calls");
    }
}
