//! Many threads on few frames, against a model of what each page holds.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use common::{Content, MemoryDevice, Random, VOLUME_BYTES, any, mapping_with_frames, verify};
use kreon_base::{PageNo, Priority};
use kreon_mapping::{Mapping, PageRequest};

const THREADS: u64 = 8;

/// How long each stress runs; `KREON_STRESS_SECONDS` makes it longer.
fn duration() -> Duration {
    let seconds = std::env::var("KREON_STRESS_SECONDS").ok();
    match seconds.and_then(|seconds| seconds.parse().ok()) {
        Some(seconds) => Duration::from_secs(seconds),
        None => Duration::from_millis(1500),
    }
}

/// What one page should hold.
#[derive(Default)]
struct Expected {
    /// The version that is being made, or the last one.
    next: AtomicU64,
    /// The last version whose making has ended.
    stable: AtomicU64,
}

struct Stress {
    device: Arc<MemoryDevice>,
    mapping: Mapping,
    expected: Vec<Expected>,
    /// Distance of the pages on the volume.
    stride: u64,
    faults: bool,
    stop: AtomicBool,
    reads: AtomicU64,
}

impl Stress {
    fn new(frames: u64, pages: u64, stride: u64) -> Self {
        let device = Arc::new(MemoryDevice::new(VOLUME_BYTES, Content::Numbered));
        Self {
            mapping: mapping_with_frames(&device, frames),
            device,
            expected: (0..pages).map(|_| Expected::default()).collect(),
            stride,
            faults: false,
            stop: AtomicBool::new(false),
            reads: AtomicU64::new(0),
        }
    }

    /// Checks a version of page `i` that was seen by a read which began when `before` was stable.
    fn judge(&self, i: usize, before: u64, seen: u64) {
        let next = self.expected[i].next.load(SeqCst);
        assert!(
            seen <= next,
            "page {i}: version {seen} from the future of {next}"
        );
        // While the page was being remade, the old one may still have come from the device.
        assert!(
            next != before || seen == before,
            "page {i}: {seen} instead of {before}"
        );
    }

    fn read(&self, random: &mut Random, depth: u64) {
        let i = random.below(self.expected.len() as u64) as usize;
        let page = i as u64 * self.stride;
        let before = self.expected[i].stable.load(SeqCst);
        let request = PageRequest {
            priority: Priority([1, 2, 2, 255][random.below(4) as usize]),
            check: &|bytes| {
                verify(page, bytes)
                    .map(|_| ())
                    .map_err(kreon_base::Error::corruption)
            },
            ..any(page)
        };
        let outcome = self.mapping.read(request, |bytes| {
            let seen = verify(page, bytes).expect("an intact page");
            if depth > 0 && random.below(3) == 0 {
                self.read(random, depth - 1);
            }
            if random.below(500) == 0 {
                thread::sleep(Duration::from_micros(random.below(2000)));
            }
            assert_eq!(
                verify(page, bytes),
                Ok(seen),
                "the page changed under its reader"
            );
            seen
        });
        self.reads.fetch_add(1, SeqCst);
        match outcome {
            Ok(seen) => self.judge(i, before, seen),
            Err(error) => assert!(self.faults, "{error}"),
        }
    }

    fn read_range(&self, random: &mut Random) {
        let i = random.below(self.expected.len() as u64 - 20) as usize;
        let count = random.below(20) as usize + 1;
        if self.stride > 1 {
            return;
        }
        let before: Vec<u64> = (i..i + count)
            .map(|i| self.expected[i].stable.load(SeqCst))
            .collect();
        let mut bytes = vec![0; count * 4096];
        let outcome = self
            .mapping
            .read_bytes(i as u64 * 4096, Priority(255), &mut bytes);
        match outcome {
            Ok(()) => {
                for (k, page) in bytes.chunks_exact(4096).enumerate() {
                    let seen = verify((i + k) as u64, page.try_into().unwrap()).expect("intact");
                    self.judge(i + k, before[k], seen);
                }
            }
            Err(error) => assert!(self.faults, "{error}"),
        }
    }

    fn prefetch(&self, random: &mut Random) {
        let requests: Vec<_> = (0..random.below(40))
            .map(|_| any(random.below(self.expected.len() as u64) * self.stride))
            .collect();
        let outcome = self.mapping.prefetch(&requests);
        assert!(outcome.is_ok() || self.faults);
    }

    /// Makes the next version of a page that belongs to this thread.
    fn remake(&self, random: &mut Random, thread: u64) {
        let count = self.expected.len() as u64 / THREADS;
        let i = random.below(count) * THREADS + thread;
        let (page, expected) = (i * self.stride, &self.expected[i as usize]);
        let version = expected.next.fetch_add(1, SeqCst) + 1;
        if random.below(4) > 0 {
            self.mapping.discard(PageNo(page), 1);
            self.device.fenced.lock().insert(page);
            if random.below(4) == 0 {
                thread::yield_now();
            }
            self.device.fenced.lock().remove(&page);
        }
        while let Err(error) = common::fresh(&self.mapping, page, version) {
            assert!(self.faults, "{error}");
        }
        expected.stable.store(version, SeqCst);
    }

    fn sync(&self) {
        let before: Vec<u64> = self
            .expected
            .iter()
            .map(|e| e.stable.load(SeqCst))
            .collect();
        match self.mapping.sync() {
            Ok(()) => {
                for (i, before) in before.into_iter().enumerate() {
                    let page = i as u64 * self.stride;
                    let there = verify(page, &self.device.page(page)).unwrap();
                    let undisturbed = self.expected[i].next.load(SeqCst) == before;
                    assert!(
                        !undisturbed || there == before,
                        "page {i}: {there} for {before}"
                    );
                }
            }
            Err(error) => assert!(self.faults, "{error}"),
        }
    }

    fn work(&self, thread: u64) {
        let mut random = Random(thread << 32);
        while !self.stop.load(SeqCst) {
            match random.below(100) {
                0..70 => self.read(&mut random, 3),
                70..73 => self.prefetch(&mut random),
                73..75 => self.read_range(&mut random),
                75..99 => self.remake(&mut random, thread),
                _ if thread == 0 => self.sync(),
                _ => {}
            }
        }
    }

    /// Runs, then compares everything with the model.
    fn run(&self) {
        let end = Instant::now() + duration();
        thread::scope(|scope| {
            for thread in 0..THREADS {
                scope.spawn(move || self.work(thread));
            }
            while Instant::now() < end && self.device.violations.lock().is_empty() {
                thread::sleep(Duration::from_millis(20));
            }
            self.stop.store(true, SeqCst);
        });
        self.device.read_failure_rate.store(0, SeqCst);
        self.device.write_failure_rate.store(0, SeqCst);
        self.mapping.sync().unwrap();
        self.device.assert_no_violation();
        for (i, expected) in self.expected.iter().enumerate() {
            let page = i as u64 * self.stride;
            let version = expected.stable.load(SeqCst);
            assert_eq!(
                verify(page, &self.device.page(page)),
                Ok(version),
                "on the device"
            );
            assert_eq!(
                common::version(&self.mapping, page).unwrap(),
                version,
                "in a frame"
            );
        }
        self.mapping.discard(PageNo(0), u64::MAX);
        let stats = self.mapping.stats();
        assert_eq!(stats.frames_free, stats.frames, "{stats:?}");
        assert_eq!(
            (stats.pages_resident, stats.pages_dirty),
            (0, 0),
            "{stats:?}"
        );
        println!("{} reads, {stats:?}", self.reads.load(SeqCst));
    }
}

#[test]
fn eight_threads_on_64_frames_see_what_the_model_says() {
    Stress::new(64, 512, 1).run();
}

#[test]
fn the_same_with_pages_scattered_over_more_stripes_than_the_table_holds() {
    let stress = Stress::new(64, 512, 127);
    stress.run();
    assert!(stress.mapping.stats().stripes_emptied > 0);
}

#[test]
fn the_same_on_a_device_that_fails_now_and_then() {
    let mut stress = Stress::new(64, 512, 1);
    stress.faults = true;
    stress.device.read_failure_rate.store(20, SeqCst);
    stress.device.write_failure_rate.store(5, SeqCst);
    stress.run();
}

#[test]
fn few_page_numbers_used_again_and_again_on_a_slow_device() {
    let stress = Stress::new(64, 24, 1);
    stress.device.write_delay_us.store(300, SeqCst);
    stress.device.read_delay_us.store(100, SeqCst);
    stress.run();
}

#[test]
fn threads_that_come_and_go_give_their_pins_back() {
    let stress = Stress::new(64, 512, 1);
    let end = Instant::now() + duration() / 3;
    let mut round = 0;
    while Instant::now() < end {
        round += 1;
        thread::scope(|scope| {
            for thread in 0..THREADS {
                let stress = &stress;
                scope.spawn(move || {
                    let mut random = Random(round * 100 + thread);
                    for _ in 0..50 {
                        stress.read(&mut random, 2);
                    }
                });
            }
        });
    }
    stress.mapping.discard(PageNo(0), u64::MAX);
    assert_eq!(stress.mapping.stats().frames_free, 64);
}
