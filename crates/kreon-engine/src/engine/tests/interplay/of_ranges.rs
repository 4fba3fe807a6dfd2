//! Large ranges in a full volume.

use super::*;

impl Run {
    /// Deletes the keys with numbers from `start` on, before `end`, of [`name`].
    fn erase(&mut self, start: u32, end: u32) {
        self.write(&[Change::Range(name(start), name(end))]);
    }
}

#[test]
fn a_full_volume_has_room_again_when_a_range_was_deleted() {
    for background in [Background::Threads, Background::Inline] {
        let mut run = Run::new(1, background);
        run.options = Options {
            l0_bytes: Some(64 << 10),
            volume_bytes_max: 64 << 20,
            ..run.options
        };
        run.bench = Some(Bench::open(Image::default(), run.options.clone()).unwrap());
        run.region = run.engine().region("r").unwrap();
        for round in 0..3_u8 {
            let mut number = 0;
            loop {
                let (key, value) = (name(number), vec![round; 3000]);
                match run.bench().put(&run.region, &key, &value) {
                    Ok(()) => run.map.insert(key, value),
                    Err(error) => {
                        assert_eq!(error.kind(), ErrorKind::OutOfSpace, "{error}");
                        break;
                    }
                };
                number += 1;
            }
            assert!(number > 5000, "round {round}: {number}");
            run.erase(100, number);
            run.verify();
            run.reopen();
        }
        run.end();
    }
}
