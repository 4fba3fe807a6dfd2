//! What a log claims that others hold, too.

use super::twin::Twin;
use super::*;

fn open() -> (Arc<Twin>, Bench) {
    let twin = Twin::new();
    let bench = Setup::default().open_with(twin.as_mirror());
    (twin, bench)
}

#[test]
fn nothing_is_durable_or_claimed_before_the_mirror_has_answered() {
    let (twin, bench) = open();
    let (_, end) = bench.put(b"key", b"value");
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| bench.log.sync(end));
        let target = twin.wait_until_asked(1);
        assert_eq!(twin.begun(), [target], "its members flush beside this one");
        assert!(target >= end && bench.log.written() >= target);
        assert_eq!(bench.device.flushes(), 1, "this device has flushed");
        assert_eq!(bench.log.durable(), LOG_START);
        assert_eq!(bench.log.claim(), LOG_START);
        // Neither a checkpoint nor a pad tells more, meanwhile.
        assert_eq!(bench.log.checkpoint_record(LOG_START).durable, LOG_START);
        assert!(!waits.is_finished());
        twin.make_durable(target);
        waits.join().unwrap().unwrap();
        assert_eq!(bench.log.durable(), target);
        assert_eq!(bench.log.claim(), target);
    });
}

#[test]
fn what_was_written_beyond_the_answer_is_not_durable() {
    let (twin, bench) = open();
    let (_, end) = bench.put(b"waits", b"value");
    for seed in 0..20 {
        bench.put(b"buffered", &noise(50_000, seed));
    }
    while bench.log.write_ready(0).unwrap() {}
    let written = bench.log.written();
    twin.make_durable(end);
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| bench.log.sync(end));
        let target = twin.wait_until_asked(1);
        assert!(target < written);
        twin.make_durable(target);
        waits.join().unwrap().unwrap();
        assert_eq!(bench.log.durable(), target);
        assert!(bench.log.claim() <= target);
    });
}

/// A sync during which `fails` happens to the mirror; what the log says then.
fn failed(fails: impl Fn(&Twin)) -> (Bench, Error) {
    let (twin, bench) = open();
    let (_, end) = bench.put(b"key", b"value");
    let error = std::thread::scope(|scope| {
        let waits = scope.spawn(|| bench.log.sync(end));
        twin.wait_until_asked(1);
        fails(&twin);
        waits.join().unwrap().unwrap_err()
    });
    (bench, error)
}

#[test]
fn a_mirror_that_fails_ends_all_writing_and_is_named() {
    let (bench, error) = failed(|twin| twin.fail(Error::new(ErrorKind::Io, "cut off")));
    assert_eq!(error.kind(), ErrorKind::Poisoned);
    let told = error.to_string();
    assert!(
        told.contains("the mirror of the log") && told.contains("cut off"),
        "{told}"
    );
    let later = bench.log.append_one(&put(b"key", b"later")).unwrap_err();
    assert_eq!(later.kind(), ErrorKind::Poisoned);
    assert_eq!(bench.log.durable(), LOG_START);
    assert_eq!(bench.log.claim(), LOG_START);
}

#[test]
fn an_answer_that_is_too_short_is_a_failure() {
    let (bench, error) = failed(|twin| twin.answer(LOG_START));
    assert_eq!(error.kind(), ErrorKind::Poisoned);
    assert!(error.to_string().contains("was asked for"), "{error}");
    assert_eq!(bench.log.durable(), LOG_START);
    assert_eq!(bench.log.claim(), LOG_START);
}

#[test]
fn a_log_that_its_mirror_lacks_is_not_opened() {
    let bench = Setup::default().open();
    let (_, end) = bench.put(b"key", b"value");
    bench.log.sync(end).unwrap();
    let checkpoint = bench.checkpoint(LOG_START);
    let (_, found) = checkpoint.replay(&bench.device).unwrap();
    let twin = Twin::new();
    let open = || {
        let opening = Opening {
            history: found.history.clone(),
            incarnation: 2,
            log_device: None,
            mirror: twin.as_mirror(),
        };
        let (device, space) = (Arc::clone(&bench.device), Arc::clone(&bench.space));
        Bench::try_open(device, space, opening, bench.options)
    };
    let error = open().err().unwrap();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(error.to_string().contains("members"), "{error}");
    twin.make_durable(found.history.end);
    assert!(open().is_ok());
}

#[test]
fn with_a_mirror_what_is_flushed_ends_on_the_border_of_any_block() {
    let (twin, bench) = open();
    assert_eq!(bench.device.block_bytes, 512);
    twin.make_durable(Lsn::MAX);
    for round in 1..10 {
        let (_, end) = bench.put(b"key", &noise(round * 700, round));
        bench.log.sync(end).unwrap();
        let (_, within) = kreon_format::place_of(bench.log.tail());
        assert_eq!(within % 4096, 0);
        let (start, end) = bench.device.writes()[round - 1];
        assert!(start.is_multiple_of(4096) && end.is_multiple_of(4096));
    }
}

#[test]
fn the_log_goes_to_its_own_device_and_moved_records_do_not() {
    let device = Arc::new(MemoryDevice::new(512, SEGMENTS));
    let way = Arc::new(Way {
        to: Arc::clone(&device),
        writes: AtomicU32::new(0),
        flushes: AtomicU32::new(0),
    });
    let opening = Opening {
        history: LogHistory::empty(),
        incarnation: 1,
        log_device: Some(Arc::clone(&way) as Arc<dyn Device>),
        mirror: None,
    };
    let space = Arc::new(Space::new(SEGMENTS - 3));
    let bench = Bench::try_open(device, space, opening, with_buffers(4)).unwrap();
    let (_, end) = bench.put(b"key", b"value");
    bench.log.sync(end).unwrap();
    let counts = || {
        (
            way.writes.load(Ordering::SeqCst),
            way.flushes.load(Ordering::SeqCst),
        )
    };
    assert_eq!(counts(), (1, 1), "the log");
    let mut stream = MovedStream::new(&[], 64 << 10, Backing::Ahead);
    let record = MovedRecord {
        region: REGION,
        is_deletion: false,
        key: b"key",
        payload_bytes: 8,
        has_attributes: false,
    };
    let fill = |room: &mut [u8]| {
        room.fill(7);
        Ok(())
    };
    stream
        .append(&bench.log, &bench.pages, &record, fill)
        .unwrap();
    stream.flush(&bench.log, &bench.pages).unwrap();
    assert_eq!(counts(), (1, 1));
    assert_eq!(bench.device.writes().len(), 2, "moved records, too");
}

/// A way of its own to a device.
struct Way {
    to: Arc<MemoryDevice>,
    writes: AtomicU32,
    flushes: AtomicU32,
}

impl Device for Way {
    fn block_bytes(&self) -> u32 {
        self.to.block_bytes()
    }
    fn len_bytes(&self) -> u64 {
        self.to.len_bytes()
    }
    fn len_bytes_max(&self) -> u64 {
        self.to.len_bytes_max()
    }
    fn grow(&self, len_bytes: u64) -> Result<()> {
        self.to.grow(len_bytes)
    }
    fn allocate(&self, offset: u64, len_bytes: u64) -> Result<()> {
        self.to.allocate(offset, len_bytes)
    }
    fn discard(&self, offset: u64, len_bytes: u64) -> Result<()> {
        self.to.discard(offset, len_bytes)
    }
    fn read(&self, reads: &mut [kreon_device::Read<'_>]) -> Result<()> {
        self.to.read(reads)
    }
    fn write(&self, writes: &[kreon_device::Write<'_>]) -> Result<()> {
        self.writes.fetch_add(1, Ordering::SeqCst);
        self.to.write(writes)
    }
    fn flush(&self) -> Result<()> {
        self.flushes.fetch_add(1, Ordering::SeqCst);
        self.to.flush()
    }
    fn stats(&self) -> kreon_device::DeviceStats {
        self.to.stats()
    }
}

#[test]
fn an_abandoned_log_tells_all_that_wait_and_leaves_what_was_claimed() {
    let (twin, bench) = open();
    let (_, first) = bench.put(b"first", b"value");
    twin.make_durable(Lsn(LOG_START.0 + 4096));
    bench.log.sync(first).unwrap();
    let checkpoint = bench.checkpoint(LOG_START);
    let (_, second) = bench.put(b"second", b"value");
    std::thread::scope(|scope| {
        let leads = scope.spawn(|| bench.log.sync(second));
        twin.wait_until_asked(2);
        let waits = scope.spawn(|| bench.log.sync(second));
        while bench.log.commit().waiters().waiting() == 0 {
            std::thread::yield_now();
        }
        let abandons = scope.spawn(|| bench.log.abandon());
        let closed = |error: Error| assert_eq!(error.kind(), ErrorKind::Closed, "{error}");
        closed(waits.join().unwrap().unwrap_err());
        assert!(!abandons.is_finished(), "a call of the mirror is under way");
        twin.fail(Error::new(ErrorKind::Io, "deposed"));
        closed(leads.join().unwrap().unwrap_err());
        abandons.join().unwrap();
        closed(bench.log.append_one(&put(b"third", b"value")).unwrap_err());
    });
    let before = bench.device.done.lock().len();
    assert!(bench.log.write_out_step().is_err());
    assert_eq!(bench.device.done.lock().len(), before);
    // The flush of the second was not claimed, and a power cut may take it or not.
    bench.device.crash(|_| false);
    let (seen, _) = checkpoint.replay(&bench.device).unwrap();
    assert_eq!(keys(&seen).first().map(String::as_str), Some("first"));
}
