//! Reading through the kernel's mapping of a real file.

mod common;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::SeqCst};

use common::{Random, any, fill, fresh, version};
use kreon_base::{Error, ErrorKind, PageNo, Priority};
use kreon_device::{AlignedBuf, Device, Facility, FileDevice, FileOptions, MapAdvice};
use kreon_mapping::{Backend, Mapping, MappingOptions, PageRequest};

const PAGES: u64 = 4096;

/// A file that is deleted in the end.
struct Volume {
    path: PathBuf,
    device: Arc<FileDevice>,
}

impl Volume {
    /// Every page at version 0.
    fn new(direct: Facility) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, SeqCst);
        let name = format!("mapped-{}-{number}", std::process::id());
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let options = FileOptions {
            create: true,
            direct,
            ..FileOptions::default()
        };
        let (device, _) = FileDevice::open(&path, &options).unwrap();
        device.grow(PAGES * 4096).unwrap();
        let volume = Self {
            path,
            device: Arc::new(device),
        };
        (0..PAGES).for_each(|page| volume.write(page, 0));
        volume
    }

    /// Writes past the mapping.
    fn write(&self, page: u64, version: u64) {
        let mut buffer = AlignedBuf::new(4096);
        buffer.copy_from_slice(&*fill(page, version));
        self.device.write_at(page * 4096, &buffer).unwrap();
    }

    fn mapping(&self, advice: MapAdvice) -> kreon_base::Result<Mapping> {
        let mut options = MappingOptions::new(4 << 20, 1 << 30);
        options.modes.backend = Backend::Mmap(advice);
        Mapping::new(self.device.clone(), options)
    }
}

impl Drop for Volume {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

#[test]
fn every_page_and_range_reads_as_the_file_has_it_whatever_the_kernel_is_advised() {
    let volume = Volume::new(Facility::Off);
    for advice in [
        MapAdvice::Normal,
        MapAdvice::Random,
        MapAdvice::Sequential,
        MapAdvice::WillNeed,
    ] {
        let mapping = volume.mapping(advice).unwrap();
        let requests: Vec<_> = (0..PAGES).step_by(3).map(any).collect();
        mapping.prefetch(&requests).unwrap();
        (0..PAGES).for_each(|page| assert_eq!(version(&mapping, page).unwrap(), 0));
        let (mut scratch, mut random) = (Vec::new(), Random(1));
        for _ in 0..300 {
            let offset = random.below(PAGES * 4096 - 200_000);
            let len = [10, 1000, 9000, 200_000][random.below(4) as usize];
            let mut expected = AlignedBuf::new(210_000_usize.next_multiple_of(4096));
            let first = offset / 4096 * 4096;
            volume.device.read_at(first, &mut expected).unwrap();
            let expected = &expected[(offset - first) as usize..][..len];
            let same = |bytes: &[u8]| bytes == expected;
            let read = mapping.with_bytes(offset, len, Priority(255), &mut scratch, same);
            assert!(read.unwrap(), "{len} bytes at {offset}");
        }
        let stats = mapping.stats();
        assert_eq!((stats.pages_read, stats.misses, stats.hits), (0, 0, 0));
        assert!(stats.pages_mapped >= PAGES + 300, "{stats:?}");
    }
}

#[test]
fn a_page_reads_as_it_was_made_before_during_and_after_its_way_to_the_device() {
    let volume = Volume::new(Facility::Off);
    let mapping = volume.mapping(MapAdvice::Random).unwrap();
    let frames = mapping.stats().frames;
    let pages = 8 * frames;
    assert!(pages <= PAGES, "the test needs more pages");
    for number in 1..=3 {
        for page in 0..pages {
            fresh(&mapping, page, number).unwrap();
            assert_eq!(version(&mapping, page).unwrap(), number);
            let older = (page * 7) % pages;
            let expected = if older <= page { number } else { number - 1 };
            assert_eq!(version(&mapping, older).unwrap(), expected, "{older}");
        }
        mapping.sync().unwrap();
        (0..pages).for_each(|page| assert_eq!(version(&mapping, page).unwrap(), number));
        mapping.discard(PageNo(0), pages);
        // What was written stands in the file as well.
        (0..pages).for_each(|page| assert_eq!(version(&mapping, page).unwrap(), number));
    }
    assert!(mapping.stats().pages_evicted > 0);
}

#[test]
fn what_was_written_past_the_mapping_is_seen() {
    let volume = Volume::new(Facility::Off);
    let mapping = volume.mapping(MapAdvice::Random).unwrap();
    for number in 1..5 {
        volume.write(77, number);
        mapping.discard(PageNo(77), 1);
        assert_eq!(version(&mapping, 77).unwrap(), number);
    }
    volume.device.grow(2 * PAGES * 4096).unwrap();
    volume.write(PAGES + 9, 3);
    assert_eq!(version(&mapping, PAGES + 9).unwrap(), 3);
}

#[test]
fn pages_behind_the_end_are_errors_and_no_signal() {
    let volume = Volume::new(Facility::Off);
    let mapping = volume.mapping(MapAdvice::Random).unwrap();
    let outside = mapping.read(any(PAGES), |_| ()).unwrap_err();
    assert_eq!(outside.kind(), ErrorKind::InvalidArgument);
    let mut into = [0; 5000];
    let over = mapping.read_bytes(PAGES * 4096 - 100, Priority(255), &mut into);
    assert_eq!(over.unwrap_err().kind(), ErrorKind::InvalidArgument);
    let requests: Vec<_> = (PAGES - 10..PAGES + 10).map(any).collect();
    mapping.prefetch(&requests).unwrap();
}

#[test]
fn a_page_is_verified_until_it_was_right_once_and_again_after_it_changed() {
    let volume = Volume::new(Facility::Off);
    let mapping = volume.mapping(MapAdvice::Random).unwrap();
    let (checks, allowed) = (AtomicU64::new(0), AtomicU64::new(0));
    let check = |_: &kreon_base::PageBytes| match checks.fetch_add(1, SeqCst) {
        call if call < allowed.load(SeqCst) => Ok(()),
        _ => Err(Error::invalid("not what it should be")),
    };
    let read = || {
        let request = PageRequest {
            page: PageNo(5),
            priority: Priority(2),
            check: &check,
        };
        mapping.read(request, |_| ())
    };
    assert!(read().is_err());
    assert!(read().is_err());
    allowed.store(u64::MAX, SeqCst);
    assert!(read().is_ok());
    assert!(read().is_ok());
    assert_eq!(checks.load(SeqCst), 3);
    mapping.discard(PageNo(5), 1);
    assert!(read().is_ok());
    assert_eq!(checks.load(SeqCst), 4);
}

#[test]
fn direct_io_is_refused() {
    let volume = Volume::new(Facility::Auto);
    if volume.device.is_direct() {
        let refused = volume.mapping(MapAdvice::Random).err().expect("refused");
        assert_eq!(refused.kind(), ErrorKind::InvalidArgument, "{refused}");
    }
}

#[test]
fn eight_threads_see_each_page_as_it_was_made_last() {
    let volume = Volume::new(Facility::Off);
    let mapping = volume.mapping(MapAdvice::Random).unwrap();
    let pages = 600;
    // Twice the version, and one more while the next is being made.
    let steps: Vec<_> = (0..pages).map(|_| AtomicU64::new(0)).collect();
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let (mapping, steps) = (&mapping, &steps);
            scope.spawn(move || {
                let mut random = Random(thread);
                for round in 0..4000 {
                    let page = random.below(pages);
                    // Each page has one thread that makes it.
                    if page % 8 == thread {
                        let step = steps[page as usize].fetch_add(1, SeqCst);
                        fresh(mapping, page, step / 2 + 1).unwrap();
                        steps[page as usize].fetch_add(1, SeqCst);
                        if round % 500 == 0 {
                            mapping.sync().unwrap();
                        }
                    } else {
                        let step = &steps[page as usize];
                        let before = step.load(SeqCst);
                        let seen = mapping
                            .read(any(page), |bytes| common::verify(page, bytes))
                            .unwrap();
                        // A reader that meets a write may see anything: a store has no such readers.
                        if before % 2 == 0 && step.load(SeqCst) == before {
                            assert_eq!(seen, Ok(before / 2), "page {page}");
                        }
                    }
                }
            });
        }
    });
    mapping.sync().unwrap();
    for (page, step) in (0..pages).zip(&steps) {
        assert_eq!(version(&mapping, page).unwrap(), step.load(SeqCst) / 2);
    }
}
