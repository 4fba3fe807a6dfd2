//! Writers, and a mirror that lands and flushes beside them.

use kreon_base::Lsn;
use kreon_sync::AtomicU64;

use super::*;
use crate::history::LOG_START;
use crate::mirror::LogMirror;

/// What the other members have.
struct Twin {
    landed: AtomicU64,
    durable: AtomicU64,
}

impl LogMirror for Twin {
    fn grown(&self) {}

    fn landed(&self) -> Lsn {
        Lsn(self.landed.load(Ordering::Acquire))
    }

    fn sync(&self, upto: Lsn) -> Result<Lsn> {
        yield_now();
        self.durable.fetch_max(upto.0, Ordering::AcqRel);
        yield_now();
        Ok(self.durable())
    }

    fn durable(&self) -> Lsn {
        Lsn(self.durable.load(Ordering::Acquire))
    }
}

fn open_mirrored() -> (Arc<Disk>, Arc<Twin>, Arc<Log>) {
    let twin = Arc::new(Twin {
        landed: AtomicU64::new(LOG_START.0),
        durable: AtomicU64::new(LOG_START.0),
    });
    let mirror = Arc::clone(&twin) as Arc<dyn LogMirror>;
    let (disk, log) = open_with(None, Some(mirror));
    (disk, twin, log)
}

/// Waits for two positions that the mirror lands, in threads of their own.
fn waiting(log: &Arc<Log>) -> Vec<thread::JoinHandle<Result<()>>> {
    let wait = |distance: u64| {
        let log = Arc::clone(log);
        thread::spawn(move || log.wait_for_mirror(Lsn(LOG_START.0 + distance)))
    };
    [1000, 2000].map(wait).into()
}

#[test]
fn model_whoever_waits_for_the_mirror_goes_on_when_it_has_landed() {
    explore("mirror: two that wait, one that lands", 3000, || {
        let (_disk, twin, log) = open_mirrored();
        let waiting = waiting(&log);
        for distance in [500, 1500, 2000] {
            twin.landed.store(LOG_START.0 + distance, Ordering::Release);
            log.mirror_landed();
        }
        for thread in waiting {
            thread.join().unwrap().unwrap();
        }
    });
}

#[test]
fn model_whoever_waits_for_the_mirror_is_told_of_an_abandoned_log() {
    explore("mirror: two that wait, one that abandons", 3000, || {
        let (_disk, twin, log) = open_mirrored();
        let waiting = waiting(&log);
        twin.landed.store(LOG_START.0 + 1000, Ordering::Release);
        log.mirror_landed();
        log.abandon();
        let outcomes = waiting.into_iter().map(|thread| thread.join().unwrap());
        let refused = outcomes.filter_map(Result::err).map(|error| error.kind());
        let refused: Vec<_> = refused.collect();
        assert!(
            refused.contains(&ErrorKind::Closed),
            "nobody lands the rest"
        );
    });
}

#[test]
fn model_nothing_counts_as_durable_that_the_mirror_lacks() {
    explore(
        "mirror: two writers that sync, one that looks",
        3000,
        || {
            let (disk, twin, log) = open_mirrored();
            let writer = |_| {
                let (disk, twin, log) = (Arc::clone(&disk), Arc::clone(&twin), Arc::clone(&log));
                thread::spawn(move || {
                    let (places, end) = append(&log).unwrap();
                    sync_and_check(&disk, &log, &places, end).unwrap();
                    assert!(twin.durable() >= end, "told before the mirror had it");
                })
            };
            let mut threads: Vec<_> = (0..2).map(writer).collect();
            threads.push(thread::spawn(move || {
                for _ in 0..6 {
                    let (durable, claim) = (log.durable(), log.claim());
                    assert!(durable.max(claim) <= twin.durable());
                    yield_now();
                }
            }));
            join_all(threads);
        },
    );
}
