//! A process that is killed leaves writes that were not flushed; a power cut may still take them.

use std::sync::Arc;

use kreon_device::Device;
use kreon_engine::Engine;
use kreon_format::SUPERBLOCK_PAGES;
use kreon_sim::{Call, Effect, Event, Fault, History, Keep, SimDevice, SimOptions};
use kreon_torture::settings::options;

fn open(device: SimDevice) -> kreon_base::Result<(Arc<SimDevice>, Engine)> {
    let device = Arc::new(device);
    let engine = Engine::open(Arc::clone(&device) as Arc<dyn Device>, options())?;
    Ok((device, engine))
}

#[test]
fn a_superblock_that_was_not_flushed_is_not_built_upon() {
    let (device, engine) = open(SimDevice::new(SimOptions::default())).unwrap();
    engine.region("first").unwrap();
    engine.region("second").unwrap();
    let history = device.history();
    drop(engine);
    let is_slot = |offset: u64| SUPERBLOCK_PAGES.iter().any(|p| p.offset_bytes() == offset);
    let mut cuts = 0;
    for (number, event) in history.events.iter().enumerate() {
        let Event::WriteBegan { offset, .. } = event else {
            continue;
        };
        if !is_slot(*offset) {
            continue;
        }
        if let Some(killed_at) = ended(&history.events, number) {
            cuts += cuts_after_kill(&history, killed_at);
        }
    }
    assert!(cuts > 100, "{cuts}");
}

/// The process is killed after so many events. The next one sees all of them, and nothing is flushed
/// until that one does it. Returns how many power cuts in its open were tried.
fn cuts_after_kill(history: &History, killed_at: usize) -> usize {
    let mut history = history.clone();
    history.events.truncate(killed_at);
    let seen = history.crash().image(&mut Keep::All);
    let (device, engine) = open(SimDevice::from_image(seen, SimOptions::default())).unwrap();
    let events = device.history().events.into_iter();
    history
        .events
        .extend(events.map(|event| later(event, 1 << 32)));
    drop(engine);
    let mut cuts = 0;
    // Up to the middle of the first checkpoint: behind its flush all is as usual.
    for events in killed_at..history.events.len().min(killed_at + 20) {
        let crash = history.crash_after(events);
        let later_ones = crash.pending().into_iter().skip(1).map(|p| p.write);
        for mut keep in [
            Keep::Writes(later_ones.collect()),
            Keep::SomeWrites { seed: 5 },
        ] {
            let image = crash.image(&mut keep);
            let opened = open(SimDevice::from_image(image, SimOptions::default()));
            let error = opened.err();
            assert!(
                error.is_none(),
                "killed at {killed_at}, cut at {events}, {keep:?}: {error:?}"
            );
            cuts += 1;
        }
    }
    cuts
}

/// The events up to the end of the write that event `began` begins.
fn ended(events: &[Event], began: usize) -> Option<usize> {
    let Event::WriteBegan { write: begun, .. } = events.get(began)? else {
        return None;
    };
    let is_end = |event: &Event| matches!(event, Event::WriteEnded { write } if write == begun);
    events.iter().position(is_end).map(|number| number + 1)
}

/// The event with numbers of its own.
fn later(event: Event, by: u64) -> Event {
    match event {
        Event::WriteBegan {
            write,
            offset,
            content,
        } => Event::WriteBegan {
            write: write + by,
            offset,
            content,
        },
        Event::WriteEnded { write } => Event::WriteEnded { write: write + by },
        Event::Grown { write, len_bytes } => Event::Grown {
            write: write + by,
            len_bytes,
        },
        Event::FlushBegan { flush } => Event::FlushBegan { flush: flush + by },
        Event::FlushEnded { flush } => Event::FlushEnded { flush: flush + by },
        Event::FlushFailed { flush } => Event::FlushFailed { flush: flush + by },
    }
}

#[test]
fn an_open_whose_flush_fails_says_so() {
    let (device, engine) = open(SimDevice::new(SimOptions::default())).unwrap();
    drop(engine);
    device.inject(Fault::nth(1, Call::Flush, Effect::Io));
    let failed = Engine::open(Arc::clone(&device) as Arc<dyn Device>, options());
    assert_eq!(
        failed.err().map(|e| e.kind()),
        Some(kreon_base::ErrorKind::Io)
    );
}
