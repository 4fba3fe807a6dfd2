//! Crashes of the machine: any part of what was not flushed may be missing.

use super::*;

/// A small generator of numbers: the tests must repeat.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % limit
    }
}

fn one_segment_device() -> (Arc<MemoryDevice>, Arc<Space>) {
    (
        Arc::new(MemoryDevice::new(512, SEGMENTS)),
        Arc::new(Space::new(SEGMENTS - 3)),
    )
}

#[test]
fn any_part_of_an_unflushed_tail_leaves_a_prefix_of_whole_units() {
    let mut sectors = 1;
    for mask in 0..256_usize {
        if mask >> sectors != 0 {
            break;
        }
        let (device, space) = one_segment_device();
        let bench = Bench::open(device, space, LogHistory::empty(), 1, with_buffers(2));
        let checkpoint = bench.checkpoint(LOG_START);
        bench
            .log
            .sync(bench.put(b"synced", &noise(600, 1)).1)
            .unwrap();
        for (key, len) in [(b"1", 900), (b"2", 100), (b"3", 2300)] {
            let value = noise(len, len);
            bench
                .log
                .append(&[put(key, &value), put(key, b"second")], |_| {})
                .unwrap();
        }
        bench.log.write_out(bench.log.tail()).unwrap();
        sectors = bench.device.unflushed.lock().len();
        assert!((6..=8).contains(&sectors), "{sectors}");
        bench.device.crash(|sector| mask >> sector & 1 == 1);
        let (seen, _) = checkpoint.replay(&bench.device).unwrap();
        let whole = ["synced", "1", "1", "2", "2", "3", "3"];
        assert!([1, 3, 5, 7].contains(&seen.len()), "mask {mask}: {seen:?}");
        assert_eq!(keys(&seen), whole[..seen.len()]);
        assert_eq!(mask + 1 == 1 << sectors, seen.len() == 7, "mask {mask}");
    }
}

/// What a run of the store appended, one number a unit.
#[derive(Default)]
struct Model {
    units: Vec<(u64, usize)>,
    next: u64,
    synced: usize,
}

impl Model {
    fn append(&mut self, bench: &Bench, random: &mut Random) {
        let records = 1 + random.below(3);
        let len = match random.below(40) {
            0 => 150_000 + random.below(400_000),
            1..8 => random.below(9000),
            _ => random.below(300),
        };
        let (key, value) = (self.next.to_be_bytes(), noise(len, self.next as usize));
        let unit: Vec<_> = (0..records).map(|_| put(&key, &value)).collect();
        bench.log.append(&unit, |_| {}).unwrap();
        self.units.push((self.next, records));
        self.next += 1;
    }

    /// Checks what came back, and goes on from there.
    fn came_back(&mut self, seen: &[Seen], passed: usize) {
        let mut rest = seen;
        let mut count = passed;
        for (number, records) in &self.units[passed..] {
            if rest.is_empty() {
                break;
            }
            let (unit, behind) = rest.split_at(*records);
            assert!(unit.iter().all(|seen| seen.key == number.to_be_bytes()));
            (rest, count) = (behind, count + 1);
        }
        assert!(rest.is_empty());
        assert!(
            count >= self.synced,
            "{count} units came back, {} were synced",
            self.synced
        );
        self.units.truncate(count);
        self.synced = count;
    }
}

#[test]
fn what_was_synced_survives_every_crash_and_the_rest_is_a_prefix() {
    for seed in 0..60 {
        let mut random = Random(seed);
        let (device, space) = one_segment_device();
        let mut bench = Bench::open(device, space, LogHistory::empty(), 1, with_buffers(2));
        let mut checkpoint = bench.checkpoint(LOG_START);
        let (mut model, mut passed) = (Model::default(), 0);
        for _ in 0..4 {
            for _ in 0..random.below(60) {
                model.append(&bench, &mut random);
                match random.below(12) {
                    0 | 1 => {
                        bench.log.sync(bench.log.tail()).unwrap();
                        model.synced = model.units.len();
                    }
                    2 => bench.log.write_out(bench.log.tail()).unwrap(),
                    3 if random.below(3) == 0 => {
                        checkpoint = bench.checkpoint(bench.log.tail());
                        passed = model.units.len();
                        model.synced = passed;
                    }
                    _ => {}
                }
            }
            if random.below(2) == 0 {
                bench.log.write_out(bench.log.tail()).unwrap();
            }
            let lost = random.below(100);
            bench.device.crash(|_| random.below(100) >= lost);
            let (again, seen) = bench.reopen(&checkpoint);
            model.came_back(&seen, passed);
            bench = again;
            checkpoint = bench.checkpoint(checkpoint.record.marker);
        }
    }
}
