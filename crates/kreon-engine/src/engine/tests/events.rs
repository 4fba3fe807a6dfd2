//! What a listener hears.

use std::sync::Mutex as StdMutex;
use std::time::Duration;

use kreon_sim::{Call, Effect, Fault};

use super::*;
use crate::events::{Event, Events, Stall};

#[derive(Clone, Default)]
struct Heard(Arc<StdMutex<Vec<Event>>>);

impl Heard {
    fn events(&self) -> Events {
        let heard = self.clone();
        Events::of(move |event| heard.0.lock().unwrap().push(event.clone()))
    }

    fn all(&self) -> Vec<Event> {
        self.0.lock().unwrap().clone()
    }

    fn count(&self, is_it: impl Fn(&Event) -> bool) -> u64 {
        self.all().iter().filter(|event| is_it(event)).count() as u64
    }
}

fn heard_options(heard: &Heard) -> Options {
    Options {
        events: heard.events(),
        l0_bytes: Some(16 << 10),
        growth_factor: Some(2),
        ..options()
    }
}

#[test]
fn events_tell_what_the_figures_count() {
    let heard = Heard::default();
    let bench = Bench::open(Image::default(), heard_options(&heard)).unwrap();
    let region = bench.engine.region("r").unwrap();
    for key in 0..60_000 {
        bench
            .put(&region, &name(key % 20_000), &value(key))
            .unwrap();
    }
    bench.engine.checkpoint().unwrap();
    let stats = bench.engine.stats();

    let spilled = |event: &Event| matches!(event, Event::SpillEnded { error: None, .. });
    let merged = |event: &Event| matches!(event, Event::MergeEnded { error: None, pages_written, .. } if *pages_written > 0);
    let collected = |event: &Event| matches!(event, Event::CollectionEnded { .. });
    assert_eq!(heard.count(spilled), stats.spills);
    assert_eq!(heard.count(merged), stats.merges);
    assert_eq!(heard.count(collected), stats.collection.rounds);
    assert!(stats.spills > 3 && stats.merges > 0 && stats.collection.rounds > 0);
    let written = heard.all().iter().fold(0, |sum, event| match event {
        Event::SpillEnded { pages_written, .. } => sum + pages_written,
        _ => sum,
    });
    assert_eq!(written, stats.spill_pages_written);

    // The epochs of checkpoints ascend by one, up to the one that counts.
    let epochs: Vec<u64> = heard.all().iter().filter_map(epoch).collect();
    assert!(epochs.windows(2).all(|pair| pair[0] + 1 == pair[1]));
    assert_eq!(epochs.last(), Some(&stats.epoch));
}

fn epoch(event: &Event) -> Option<u64> {
    match event {
        Event::Checkpointed { epoch, .. } => Some(*epoch),
        _ => None,
    }
}

#[test]
fn what_began_ends_before_the_next_of_its_kind_begins() {
    let heard = Heard::default();
    let bench = Bench::open(Image::default(), heard_options(&heard)).unwrap();
    let region = bench.engine.region("named").unwrap();
    for key in 0..12_000 {
        bench.put(&region, &name(key), &value(key)).unwrap();
    }
    let (mut spills, mut merges) = (0, 0);
    for event in heard.all() {
        match event {
            Event::SpillBegan { entries } => {
                spills += 1;
                assert!(entries > 0);
            }
            Event::SpillEnded { .. } => spills -= 1,
            Event::MergeBegan {
                region,
                level,
                levels,
                ..
            } => {
                merges += 1;
                assert_eq!((&*region, levels >= 2, level >= 1), ("named", true, true));
            }
            Event::MergeEnded { .. } => merges -= 1,
            _ => {}
        }
        assert!((0..=1).contains(&spills) && (0..=1).contains(&merges));
    }
    assert_eq!((spills, merges), (0, 0));
}

#[test]
fn a_failure_that_ends_writing_is_told_once() {
    let heard = Heard::default();
    let bench = Bench::open(Image::default(), heard_options(&heard)).unwrap();
    let region = bench.engine.region("r").unwrap();
    bench.put(&region, b"k", b"v").unwrap();
    let failure = Fault::nth(1, Call::Flush, Effect::Io).for_ever();
    bench.device.inject(failure);
    assert!(bench.engine.sync().is_err());
    assert!(bench.engine.checkpoint().is_err());
    let poisoned = |event: &Event| matches!(event, Event::Poisoned { .. });
    assert_eq!(heard.count(poisoned), 1);
}

#[test]
fn a_writer_that_waits_for_a_spill_is_told_as_a_stall() {
    let heard = Heard::default();
    let driven = Options {
        background: Background::Driven,
        ..heard_options(&heard)
    };
    let bench = Bench::open(Image::default(), driven).unwrap();
    let region = bench.engine.region("r").unwrap();
    let is_stalled = |event: &Event| {
        let reason = Stall::FullL0;
        matches!(event, Event::StallBegan { reason: told } if *told == reason)
    };
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for key in 0..20_000 {
                bench.put(&region, &name(key), &value(key)).unwrap();
            }
        });
        while !writer.is_finished() {
            if heard.count(is_stalled) > 0 {
                bench.engine.background(Work::Spill).unwrap();
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    });
    let ends = |event: &Event| {
        matches!(
            event,
            Event::StallEnded {
                reason: Stall::FullL0,
                ..
            }
        )
    };
    assert!(heard.count(is_stalled) > 0);
    assert_eq!(heard.count(is_stalled), heard.count(ends));
}
