//! Followers beside writers.

use super::*;

#[test]
fn a_follower_waits_until_more_is_durable_or_the_store_is_closed() {
    let bench = opened(Image::default());
    let region = bench.engine.region("r").unwrap();
    let mut changes = follow(&bench, bench.engine.changes_end().unwrap());
    assert!(units(&mut changes).is_empty());
    assert!(!changes.wait(Duration::ZERO).unwrap());
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| {
            while changes.wait(Duration::from_secs(60)).unwrap() {
                if let Some(unit) = changes.next_unit().unwrap() {
                    return brief(&unit);
                }
            }
            Vec::new()
        });
        put(&bench, &region, b"key", b"value");
        assert_eq!(waits.join().unwrap(), ["r put key 5"]);
    });
    assert!(units(&mut changes).is_empty());
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| {
            loop {
                if let Err(error) = changes.wait(Duration::from_secs(60)) {
                    return error.kind();
                }
                _ = changes.next_unit();
            }
        });
        bench.engine.close().unwrap();
        assert_eq!(waits.join().unwrap(), ErrorKind::Closed);
    });
}

#[test]
fn a_follower_beside_writers_sees_each_batch_whole_and_keys_in_their_order() {
    const WRITERS: u32 = 3;
    const BATCHES: u32 = 300;
    let options = Options {
        background: Background::Threads,
        ..feeding()
    };
    let bench = Bench::open(Image::default(), options).unwrap();
    let region = bench.engine.region("r").unwrap();
    let mut changes = follow(&bench, bench.engine.changes_end().unwrap());
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let (bench, region) = (&bench, &region);
            scope.spawn(move || {
                for number in 0..BATCHES {
                    let keys = [0, 1, 2].map(|key| name(writer * 10 + key));
                    let keys = [&keys[0][..], &keys[1], &keys[2]];
                    let value = number.to_le_bytes().repeat(1 + number as usize % 700);
                    batch(bench, region, &keys, &value);
                    if number % 10 == 9 {
                        bench.engine.sync().unwrap();
                    }
                }
            });
        }
        let mut last: BTreeMap<Vec<u8>, u32> = BTreeMap::new();
        let mut left = WRITERS * BATCHES;
        while left > 0 {
            assert!(changes.wait(Duration::from_secs(60)).unwrap());
            while let Some(unit) = changes.next_unit().unwrap() {
                let values = unit.changes.iter().map(|change| match &change.what {
                    Changed::Put { key, value, .. } => {
                        let number = u32::from_le_bytes(*value.first_chunk().unwrap());
                        let before = last.insert(key.clone(), number);
                        assert_eq!(before.map_or(0, |before| before + 1), number);
                        number
                    }
                    other => panic!("{other:?}"),
                });
                let values: Vec<_> = values.collect();
                assert!(values.len() == 3 && values.iter().all(|value| *value == values[0]));
                left -= 1;
            }
        }
    });
}
