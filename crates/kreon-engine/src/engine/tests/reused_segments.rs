//! Segments of the log that are used again while buffers of earlier uses are in memory.

use super::*;

#[test]
fn overwritten_keys_have_their_last_values_when_many_buffers_of_the_log_live() {
    const KEYS: u32 = 2500;
    let options = Options {
        memory_bytes: 64 << 20,
        log_buffer_bytes: Some(32 << 20),
        l0_bytes: Some(4 << 20),
        ..options()
    };
    let bench = Bench::open(Image::default(), options).unwrap();
    let region = bench.engine.region("r").unwrap();
    for round in 0..16u8 {
        let value = |key: u32| [&key.to_le_bytes()[..], &[round; 1000]].concat();
        for key in 0..KEYS {
            bench.put(&region, &name(key), &value(key)).unwrap();
        }
        bench.engine.checkpoint().unwrap();
        for key in 0..KEYS {
            let found = bench.get(&region, &name(key));
            let found = found.unwrap_or_else(|error| panic!("round {round}: {error}"));
            assert_eq!(found.unwrap(), value(key), "round {round}");
        }
    }
}
