//! Writes whose futures end when they are durable.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use kreon_base::ErrorKind;
use kreon_sim::{Call, Effect, Fault, Keep};

use super::*;

/// Runs `future` in the calling thread, which sleeps while it waits.
fn block_on<F: Future>(future: F) -> F::Output {
    struct Unpark(std::thread::Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => std::thread::park_timeout(Duration::from_secs(20)),
        }
    }
}

/// Counts how often a task was woken.
#[derive(Default)]
struct Bells(AtomicU32);

impl Wake for Bells {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

fn threaded() -> (Bench, Arc<RegionState>) {
    let options = Options {
        background: Background::Threads,
        ..options()
    };
    let bench = Bench::open(Image::default(), options).unwrap();
    let region = bench.engine.region("r").unwrap();
    (bench, region)
}

impl Bench {
    fn put_async(&self, region: &RegionState, key: u32) -> Durable {
        let (key, value) = (name(key), value(key));
        let operation = Operation {
            region,
            key: &key,
            value: Some(&value),
            is_range: false,
            terms: Terms::default(),
        };
        self.engine.write_async(&[operation])
    }

    fn flushes(&self) -> u64 {
        self.device.stats().flushes
    }

    /// Every flush from now on fails.
    fn break_flushes(&self) {
        self.device
            .inject(Fault::nth(1, Call::Flush, Effect::Io).for_ever());
    }
}

#[test]
fn a_thousand_futures_share_few_flushes() {
    let (bench, region) = threaded();
    let before = bench.flushes();
    let waker = Waker::from(Arc::new(Bells::default()));
    let mut context = Context::from_waker(&waker);
    let mut futures: Vec<_> = (0..1000).map(|key| bench.put_async(&region, key)).collect();
    for future in &mut futures {
        // Asks for the flush.
        let _ = Pin::new(future).poll(&mut context);
    }
    for future in futures {
        block_on(future).unwrap();
    }
    let flushes = bench.flushes() - before;
    assert!((1..=20).contains(&flushes), "{flushes} flushes");
    assert_eq!(bench.get(&region, &name(999)).unwrap().unwrap(), value(999));
}

#[test]
fn a_future_ends_whether_threads_of_the_store_or_the_poll_itself_flush() {
    for background in [Background::Threads, Background::Inline, Background::Driven] {
        let options = Options {
            background,
            ..options()
        };
        let bench = Bench::open(Image::default(), options).unwrap();
        let region = bench.engine.region("r").unwrap();
        let log = &bench.engine.subsystems.storage.log;
        block_on(bench.put_async(&region, 1)).unwrap();
        assert!(log.durable() >= log.tail());
        bench.put(&region, &name(2), b"buffered").unwrap();
        assert!(log.durable() < log.tail());
        block_on(bench.engine.sync_async()).unwrap();
        assert!(log.durable() >= log.tail());
        block_on(bench.engine.write_async(&[])).unwrap();
    }
}

#[test]
fn a_future_that_is_dropped_undoes_nothing() {
    let (bench, region) = threaded();
    let mut polled = bench.put_async(&region, 1);
    let bells = Arc::new(Bells::default());
    let waker = Waker::from(Arc::clone(&bells));
    let _ = Pin::new(&mut polled).poll(&mut Context::from_waker(&waker));
    drop(polled);
    drop(bench.put_async(&region, 2));
    for key in [1, 2] {
        assert_eq!(bench.get(&region, &name(key)).unwrap().unwrap(), value(key));
    }
    block_on(bench.put_async(&region, 3)).unwrap();
}

#[test]
fn what_a_future_ended_for_survives_a_cut_of_the_power() {
    let device = Arc::new(SimDevice::new(SimOptions::default()));
    let as_device = Arc::clone(&device) as Arc<dyn Device>;
    let engine = Engine::open(as_device, options()).unwrap();
    let region = engine.region("r").unwrap();
    let key = name(1);
    let operation = Operation {
        region: &region,
        key: &key,
        value: Some(b"durable"),
        is_range: false,
        terms: Terms::default(),
    };
    block_on(engine.write_async(&[operation])).unwrap();
    // Nothing of what was not flushed.
    let image = device.history().crash().image(&mut Keep::Nothing);
    let bench = Bench::open(image, options()).unwrap();
    let region = bench.engine.existing_region("r").unwrap();
    assert_eq!(bench.get(&region, &key).unwrap().unwrap(), b"durable");
}

#[test]
fn closing_ends_the_futures_that_wait() {
    let (bench, region) = threaded();
    let futures: Vec<_> = (0..100).map(|key| bench.put_async(&region, key)).collect();
    bench.engine.close().unwrap();
    for future in futures {
        block_on(future).unwrap();
    }
    let late = block_on(bench.put_async(&region, 7)).unwrap_err();
    assert_eq!(late.kind(), ErrorKind::Closed);
    let late = block_on(bench.engine.sync_async()).unwrap_err();
    assert_eq!(late.kind(), ErrorKind::Closed);
}

#[test]
fn a_store_that_is_dropped_while_a_future_waits_ends_it() {
    let (bench, region) = threaded();
    let future = bench.put_async(&region, 1);
    let device = Arc::clone(&bench.device);
    drop(bench);
    block_on(future).unwrap();
    let bench = Bench::open(device.image(), options()).unwrap();
    let region = bench.engine.existing_region("r").unwrap();
    assert_eq!(bench.get(&region, &name(1)).unwrap().unwrap(), value(1));
}

#[test]
fn a_failed_flush_ends_every_future_with_the_error_and_is_not_tried_again() {
    let (bench, region) = threaded();
    let mut futures: Vec<_> = (0..100).map(|key| bench.put_async(&region, key)).collect();
    bench.break_flushes();
    let before = bench.flushes();
    let bells = Arc::new(Bells::default());
    let waker = Waker::from(Arc::clone(&bells));
    for future in &mut futures {
        let _ = Pin::new(future).poll(&mut Context::from_waker(&waker));
    }
    for future in futures {
        assert_eq!(block_on(future).unwrap_err().kind(), ErrorKind::Poisoned);
    }
    assert_eq!(bench.flushes() - before, 1);
    let refused = block_on(bench.put_async(&region, 7)).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Poisoned);
    assert_eq!(bench.get(&region, &name(3)).unwrap().unwrap(), value(3));
    assert!(bench.engine.close().is_err());
}

#[test]
fn threads_and_futures_share_flushes() {
    let (bench, region) = threaded();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (bench, region) = (&bench, &region);
            scope.spawn(move || {
                for key in thread * 100..(thread + 1) * 100 {
                    if key % 2 == 0 {
                        block_on(bench.put_async(region, key)).unwrap();
                        continue;
                    }
                    let operation = Operation {
                        region,
                        key: &name(key),
                        value: Some(&value(key)),
                        is_range: false,
                        terms: Terms::default(),
                    };
                    bench.engine.write(&[operation], Durability::Sync).unwrap();
                }
            });
        }
    });
    let log = &bench.engine.subsystems.storage.log;
    assert!(log.durable() >= log.tail());
    assert!(bench.flushes() <= 410, "more flushes than writes");
}

#[test]
fn a_write_that_overtakes_an_earlier_one_is_durable_only_with_it() {
    let device = Arc::new(SimDevice::new(SimOptions::default()));
    let options = Options {
        background: Background::Threads,
        ..options()
    };
    let as_device = Arc::clone(&device) as Arc<dyn Device>;
    let engine = Engine::open(as_device, options.clone()).unwrap();
    let region = engine.region("r").unwrap();
    let put = |key: &[u8], value: &[u8], durability| {
        let region = &region;
        let value = Some(value);
        let operation = Operation {
            region,
            key,
            value,
            is_range: false,
            terms: Terms::default(),
        };
        engine.write(&[operation], durability)
    };
    let time = Duration::from_millis(200);
    device.inject(Fault::nth(1, Call::Write, Effect::Slow { time }));
    // Enough for a write by the background thread.
    let long = vec![7; 60_000];
    for key in 0..6 {
        put(&name(key), &long, Durability::Buffered).unwrap();
    }
    std::thread::sleep(time / 4);
    put(b"last", b"value", Durability::Sync).unwrap();
    let image = device.history().crash().image(&mut Keep::Nothing);
    let bench = Bench::open(image, options).unwrap();
    let region = bench.engine.existing_region("r").unwrap();
    for key in 0..6 {
        assert_eq!(bench.get(&region, &name(key)).unwrap().unwrap(), long);
    }
    assert_eq!(bench.get(&region, b"last").unwrap().unwrap(), b"value");
}

/// Does something once, when it is called.
struct Once(Mutex<Option<Box<dyn FnOnce() + Send>>>);

impl Once {
    fn waker(what: impl FnOnce() + Send + 'static) -> Waker {
        Waker::from(Arc::new(Self(Mutex::new(Some(Box::new(what))))))
    }
}

impl Wake for Once {
    fn wake(self: Arc<Self>) {
        let what = self.0.lock().unwrap().take();
        what.into_iter().for_each(|what| what());
    }
}

#[test]
fn a_waker_that_panics_harms_no_other() {
    let (bench, region) = threaded();
    for round in 0..2 {
        let mut bad = bench.put_async(&region, round);
        let waker = Once::waker(|| panic!("as ordered"));
        let _ = Pin::new(&mut bad).poll(&mut Context::from_waker(&waker));
        let bells = Arc::new(Bells::default());
        let waker = Waker::from(Arc::clone(&bells));
        let mut good = bench.put_async(&region, 100 + round);
        let poll = Pin::new(&mut good).poll(&mut Context::from_waker(&waker));
        block_on(bench.put_async(&region, 200 + round)).unwrap();
        if poll.is_pending() {
            let start = std::time::Instant::now();
            while bells.0.load(Ordering::SeqCst) == 0 {
                assert!(start.elapsed() < Duration::from_secs(20), "never woken");
                std::thread::yield_now();
            }
        }
    }
    bench.engine.close().unwrap();
}

#[test]
fn a_task_that_the_flusher_wakes_may_be_the_last_who_has_the_store() {
    let (bench, region) = threaded();
    let device = Arc::clone(&bench.device);
    let bench = Arc::new(Mutex::new(Some(bench)));
    let (closed, is_closed) = std::sync::mpsc::channel();
    // Some end at once: before the flusher begins, or by a flush that was under way.
    let future = loop {
        let mut future = bench
            .lock()
            .unwrap()
            .as_ref()
            .unwrap()
            .put_async(&region, 1);
        let (bench, closed) = (Arc::clone(&bench), closed.clone());
        let waker = Once::waker(move || {
            let bench = bench.lock().unwrap().take().unwrap();
            closed.send(bench.engine.close()).unwrap();
        });
        let poll = Pin::new(&mut future).poll(&mut Context::from_waker(&waker));
        if poll.is_pending() {
            break future;
        }
    };
    let outcome = is_closed.recv_timeout(Duration::from_secs(20));
    outcome.expect("no thread waits for itself").unwrap();
    block_on(future).unwrap();
    let bench = Bench::open(device.image(), options()).unwrap();
    let region = bench.engine.existing_region("r").unwrap();
    assert_eq!(bench.get(&region, &name(1)).unwrap().unwrap(), value(1));
}
