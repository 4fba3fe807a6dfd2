//! A device that fails, and a worker that panics.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use kreon_base::ErrorKind;
use kreon_sim::{Call, Effect, Fault, Moment, Turns};
use kvell::Durability::{Buffered, Sync};

use crate::world::{after_power_cut, new_store, value};

fn is_of_failure(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::Poisoned | ErrorKind::Io)
}

/// Writes from several threads until each is refused. How far the durable ones of each came.
fn write_until_refused(region: &kvell::Region) -> Vec<u64> {
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4_u8)
            .map(|thread| {
                scope.spawn(move || {
                    let mut durable = 0;
                    for number in 1.. {
                        let durability = if thread % 2 == 0 { Sync } else { Buffered };
                        let value = value(number, 100 + 300 * usize::from(thread));
                        match region.put([thread], value, durability) {
                            Ok(()) if durability == Sync => durable = number,
                            Ok(()) => {}
                            Err(error) => {
                                assert!(is_of_failure(error.kind()), "{error}");
                                break;
                            }
                        }
                    }
                    durable
                })
            })
            .collect();
        // One may have met the planned panic itself: callers get extents by calls of their own.
        let ends = threads.into_iter().map(|it| it.join().unwrap_or_default());
        ends.collect()
    })
}

#[test]
fn after_a_failed_write_or_flush_every_caller_is_answered_and_reads_go_on() {
    for call in [Call::Write, Call::Flush] {
        for nth in [1, 2, 3, 10, 30] {
            let (device, store, region) = new_store();
            region.put("before", "value", Sync).expect("a put");
            device.inject(Fault::nth(nth, call, Effect::Io));
            let durable = write_until_refused(&region);
            assert_eq!(device.faults_met(), 1);
            let found = region.get("before").expect("a get");
            assert_eq!(found, Some(b"value".to_vec()));
            let poisoned = Err(ErrorKind::Poisoned);
            assert_eq!(store.sync().map_err(|error| error.kind()), poisoned);
            let refused = region.delete("before", Sync).unwrap_err();
            assert!(is_of_failure(refused.kind()));
            for _ in 0..2 {
                let outcome = store.clone().close();
                assert_eq!(outcome.map_err(|error| error.kind()), poisoned);
            }
            let (_store, after) = after_power_cut(&device);
            for (thread, number) in (0..4_u8).zip(durable) {
                let found = after.get([thread]).expect("a get");
                let found = found.and_then(|it| it.first_chunk().copied());
                let found = found.map_or(0, u64::from_le_bytes);
                assert!(found >= number, "{call:?} {nth}: {found} of {number}");
            }
        }
    }
}

#[test]
fn a_sync_that_waits_for_a_flush_that_fails_is_told_so() {
    let (device, store, region) = new_store();
    device.inject(Fault::nth(1, Call::Flush, Effect::Io));
    let put = region.put("key", "value", Buffered);
    let outcome = put.and_then(|()| store.sync());
    assert!(is_of_failure(outcome.unwrap_err().kind()));
}

/// Panics in the first call of a kind, of a worker or of another thread.
struct Panics {
    call: Call,
    in_worker: bool,
    is_over: AtomicBool,
}

impl Turns for Panics {
    fn wait(&self, moment: Moment) -> bool {
        let thread = std::thread::current();
        let is_worker = thread.name().is_some_and(|name| name.starts_with("kvell-"));
        if moment == Moment::Before(self.call) && is_worker == self.in_worker {
            assert!(self.is_over.swap(true, Relaxed), "planned");
        }
        true
    }
}

#[test]
fn after_a_panic_every_caller_is_answered_and_the_store_closes() {
    // A caller writes the headers of extents.
    let places = [
        (Call::Write, true),
        (Call::Flush, true),
        (Call::Write, false),
    ];
    for (call, in_worker) in places {
        let (device, store, region) = new_store();
        region.put("before", "value", Sync).expect("a put");
        device.set_turns(Some(Arc::new(Panics {
            call,
            in_worker,
            is_over: AtomicBool::new(false),
        })));
        write_until_refused(&region);
        let outcome = store.sync().map_err(|error| error.kind());
        assert_eq!(outcome, Err(ErrorKind::Poisoned));
        let outcome = store.close().map_err(|error| error.kind());
        assert_eq!(outcome, Err(ErrorKind::Poisoned));
        let (_store, after) = after_power_cut(&device);
        let found = after.get("before").expect("a get");
        assert_eq!(found, Some(b"value".to_vec()));
    }
}

#[test]
fn a_failed_read_fails_its_request_alone() {
    let (device, store, region) = new_store();
    region.put("key", vec![1; 100_000], Sync).expect("a put");
    store.close().expect("a close");
    let store = crate::world::open(&device, &crate::world::options());
    let region = store.region("r").expect("the region");
    device.inject(Fault::nth(1, Call::Read, Effect::Io));
    assert_eq!(region.get("key").unwrap_err().kind(), ErrorKind::Io);
    assert_eq!(region.get("key").expect("a get"), Some(vec![1; 100_000]));
    region.put("key", "value", Sync).expect("a put");
}
