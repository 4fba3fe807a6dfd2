//! A member that gets the log from a thread, as the primary of a group sends it.

use std::sync::atomic::AtomicBool;

use kreon_base::SEGMENT_BYTES;
use kreon_log::LogTap;

use super::*;

/// A member's copy of the log.
struct Copy {
    image: Mutex<Image>,
    state: Mutex<Got>,
    changed: Condvar,
    is_over: AtomicBool,
}

#[derive(Clone, Copy)]
struct Got {
    has_grown: bool,
    landed: Lsn,
}

impl LogMirror for Copy {
    fn grown(&self) {
        self.state.lock().has_grown = true;
        self.changed.notify_all();
    }

    fn landed(&self) -> Lsn {
        self.state.lock().landed
    }

    fn sync(&self, upto: Lsn) -> Result<Lsn> {
        let mut state = self.state.lock();
        while state.landed < upto {
            self.changed.wait(&mut state);
        }
        Ok(state.landed)
    }

    fn durable(&self) -> Lsn {
        self.landed()
    }
}

impl Copy {
    /// Takes what `tap` has until the store is closed.
    fn follow(&self, tap: &LogTap) {
        let mut at = self.landed();
        while !self.is_over.load(Ordering::SeqCst) {
            self.state.lock().has_grown = false;
            let run = tap.run(at, 100_000, |run| {
                self.image.lock().write(run.offset.0, run.bytes);
                at = run.end;
            });
            match run {
                Ok(true) => {
                    self.state.lock().landed = at;
                    self.changed.notify_all();
                    tap.landed();
                }
                Ok(false) => {
                    let mut state = self.state.lock();
                    let patience = std::time::Duration::from_millis(5);
                    if !state.has_grown {
                        self.changed.wait_for(&mut state, patience);
                    }
                }
                Err(error) => panic!("at {at}: {error}"),
            }
        }
    }
}

#[test]
fn a_member_has_every_byte_of_the_log_while_the_store_works() {
    let device = Arc::new(SimDevice::new(SimOptions {
        record: false,
        ..SimOptions::default()
    }));
    let copy = Arc::new(Copy {
        image: Mutex::new(Image::new(256 << 20)),
        state: Mutex::new(Got {
            has_grown: false,
            landed: kreon_log::LOG_START,
        }),
        changed: Condvar::new(),
        is_over: AtomicBool::new(false),
    });
    let mirroring = Mirroring {
        log_mirror: Some(Arc::clone(&copy) as Arc<dyn LogMirror>),
        ..Mirroring::default()
    };
    let options = Options {
        background: Background::Threads,
        log_buffer_bytes: Some(4 << 20),
        // Segments of the log stay what they are.
        space_amplification: 10.0,
        mirroring,
        ..options()
    };
    let engine = Engine::open(Arc::clone(&device) as Arc<dyn Device>, options).unwrap();
    let tap = engine.log_tap();
    let regions: Vec<_> = (0..3)
        .map(|n| {
            engine
                .region_with(&format!("r{n}"), Durability::Buffered)
                .unwrap()
        })
        .collect();
    std::thread::scope(|scope| {
        let follows = scope.spawn(|| copy.follow(&tap));
        let _ends = Ends(&copy);
        let engine = &engine;
        let writers: Vec<_> = regions
            .iter()
            .enumerate()
            .map(|(seed, region)| scope.spawn(move || write(engine, region, seed as u64)))
            .collect();
        writers
            .into_iter()
            .for_each(|writer| writer.join().unwrap());
        engine.sync().unwrap();
        let copied = copy.image.lock().clone();
        let image = device.image();
        let mut compared = 0;
        for held in engine.occupied().unwrap().log {
            let end = engine.log_durable();
            let (sequence, within) = kreon_format::place_of(end);
            if held.log.0 != 0 || held.sequence > sequence {
                continue;
            }
            let bytes = match held.sequence == sequence {
                true => u64::from(within),
                false => SEGMENT_BYTES,
            };
            let at = held.segment.offset_bytes();
            let (own, theirs) = (
                image.bytes(at, bytes as usize),
                copied.bytes(at, bytes as usize),
            );
            assert!(own == theirs, "segment number {}", held.sequence);
            compared += 1;
        }
        assert!(compared > 3, "{compared}");
        engine.close().unwrap();
        copy.is_over.store(true, Ordering::SeqCst);
        follows.join().unwrap();
    });
}

/// Ends the thread that follows, however the test ends.
struct Ends<'a>(&'a Copy);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.is_over.store(true, Ordering::SeqCst);
    }
}

fn write(engine: &Engine, region: &RegionState, seed: u64) {
    let mut dice = Dice(seed);
    for round in 0..1500_u32 {
        let key = name(round);
        let value = vec![seed as u8 + 1; dice.below(3000) as usize];
        let operation = put(region, &key, &value);
        let durability = match dice.below(50) {
            0 => Durability::Sync,
            _ => Durability::Buffered,
        };
        if dice.below(200) == 0 {
            let long = vec![9; 2 << 20];
            let batch = [operation, put(region, b"long", &long)];
            engine.write(&batch, durability).unwrap();
        } else {
            engine.write(&[operation], durability).unwrap();
        }
        let (_, seen) = engine.get_seen(region, &key, |_| ()).unwrap();
        assert!(seen.newest.is_some() || engine.unlanded_from() > Lsn(0));
    }
}
