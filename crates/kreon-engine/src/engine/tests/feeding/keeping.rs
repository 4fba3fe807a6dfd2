//! How much of the log is kept, and when it is given up.

use super::*;

#[test]
fn what_is_collected_stays_in_the_feed_until_more_was_written() {
    let bench = opened(Image::default());
    let region = bench.engine.region("r").unwrap();
    let start = bench.engine.changes_end().unwrap();
    fill(&bench, &region, 20, KEPT_BYTES / 2).unwrap();
    bench.engine.checkpoint().unwrap();
    bench.engine.compact_all(&mut |_| ()).unwrap();
    let count = (KEPT_BYTES / 2).div_ceil(100 << 10) as usize;
    assert_eq!(units(&mut follow(&bench, start)).len(), count);
    let mut late = follow(&bench, start);
    late.next_unit().unwrap();
    fill(&bench, &region, 20, 2 * KEPT_BYTES).unwrap();
    bench.engine.checkpoint().unwrap();
    let oldest = bench.engine.changes_start().unwrap();
    let behind = loop {
        match late.next_unit() {
            Ok(unit) => assert!(unit.is_some(), "it ended"),
            Err(error) => break error,
        }
    };
    let refused = refusal(&bench, start.into());
    for error in [behind, refused] {
        assert_eq!(error.kind(), ErrorKind::NotFound);
        assert!(error.to_string().contains(&oldest.to_string()), "{error}");
    }
    let kept = u64::from(bench.engine.changes_end().unwrap()) - u64::from(oldest);
    assert!(kept >= KEPT_BYTES - SEGMENT_BYTES, "{kept}");
    assert!(kept <= KEPT_BYTES + 8 * SEGMENT_BYTES, "{kept}");
}

#[test]
fn no_put_fails_because_of_log_that_is_kept() {
    let small = |kept| Options {
        volume_bytes_max: 48 << 20,
        changes_kept_bytes: kept,
        ..options()
    };
    for background in [Background::Inline, Background::Driven] {
        let options = Options {
            background,
            ..small(1 << 30)
        };
        let bench = Bench::open(Image::default(), options).unwrap();
        let region = bench.engine.region("r").unwrap();
        let start = bench.engine.changes_start().unwrap();
        for round in 0..60 {
            fill(&bench, &region, 20, 4 << 20).unwrap();
            if background == Background::Driven {
                bench.engine.checkpoint().unwrap();
                bench.engine.background(Work::Collect).unwrap();
            }
            assert!(bench.engine.changes_end().unwrap() > start, "{round}");
        }
        assert_eq!(refusal(&bench, start.into()).kind(), ErrorKind::NotFound);
        let oldest = bench.engine.changes_start().unwrap();
        assert!(!units(&mut follow(&bench, oldest)).is_empty());
        assert_eq!(bench.problems(), Vec::<String>::new());
    }
}

#[test]
fn an_opening_without_the_option_gives_the_log_up() {
    let bench = opened(Image::default());
    let region = bench.engine.region("r").unwrap();
    let start = bench.engine.changes_start().unwrap();
    fill(&bench, &region, 5, 20 << 20).unwrap();
    bench.engine.checkpoint().unwrap();
    let kept = bench.engine.subsystems.storage.feed.idle_bytes();
    assert!(kept > 10 << 20, "{kept}");
    let without = Bench::open(bench.closed(), options()).unwrap();
    let bench = opened(without.closed());
    assert_eq!(refusal(&bench, start.into()).kind(), ErrorKind::NotFound);
}

#[test]
fn log_of_runs_that_nobody_remembers_is_not_shown() {
    let hardly = || Options {
        changes_kept_bytes: 1,
        ..options()
    };
    let mut bench = Bench::open(Image::default(), hardly()).unwrap();
    for round in 0..12 {
        let region = bench.engine.region("r").unwrap();
        bench.put(&region, &name(round), &vec![1; 700_000]).unwrap();
        bench.engine.checkpoint().unwrap();
        // The last runs are one.
        if round < 8 {
            bench = Bench::open(bench.closed(), hardly()).unwrap();
        }
    }
    // Its segments hold values, so they are there.
    let bench = opened(bench.closed());
    let start = bench.engine.changes_start().unwrap();
    let shown = briefs(&mut follow(&bench, start));
    assert!((1..=4).contains(&shown.len()), "{shown:?}");
    let last = format!("r put key{:06} 700000", 11);
    assert!(shown.concat().contains(&last));
}

#[test]
fn a_store_whose_feed_is_full_of_seams_is_shown_from_the_oldest_segment_on() {
    let small = || Options {
        changes_kept_bytes: 4 << 20,
        ..options()
    };
    let mut bench = Bench::open(Image::default(), small()).unwrap();
    let (mut written, mut dice) = (Vec::new(), Dice(3));
    for round in 0..60 {
        let region = bench.engine.region("r").unwrap();
        let key = name(round);
        let len = dice.below(400_000) as usize;
        put(&bench, &region, &key, &vec![1; len]);
        written.push(format!("r put key{round:06} {len}"));
        if dice.below(2) == 0 {
            bench.engine.checkpoint().unwrap();
        }
        let image = match dice.below(2) {
            0 => bench.closed(),
            _ => bench.device.image(),
        };
        bench = Bench::open(image, small()).unwrap();
        let start = bench.engine.changes_start().unwrap();
        let shown = briefs(&mut follow(&bench, start)).concat();
        let shown: Vec<_> = shown.iter().filter(|what| **what != "r made").collect();
        let expected: Vec<_> = written.iter().rev().take(shown.len()).rev().collect();
        assert_eq!(shown, expected, "round {round}");
        assert!(shown.len() >= 8.min(written.len()), "{}", shown.len());
    }
}

#[test]
fn a_feed_that_is_turned_on_begins_within_a_segment_of_unknown_runs() {
    let mut bench = Bench::open(Image::default(), options()).unwrap();
    for round in 0..6 {
        let region = bench.engine.region("r").unwrap();
        bench.put(&region, &name(round), b"before").unwrap();
        bench.engine.checkpoint().unwrap();
        bench = Bench::open(bench.closed(), options()).unwrap();
    }
    let bench = opened(bench.closed());
    let start = bench.engine.changes_start().unwrap();
    assert!(units(&mut follow(&bench, start)).is_empty());
    let region = bench.engine.region("r").unwrap();
    put(&bench, &region, b"key", b"value");
    assert_eq!(briefs(&mut follow(&bench, start)), [["r put key 5"]]);
    // Its segment is not the last one any more.
    fill(&bench, &region, 5, 5 << 20).unwrap();
    bench.engine.checkpoint().unwrap();
    assert_eq!(bench.engine.changes_start().unwrap(), start);
    assert_eq!(
        follow(&bench, start)
            .next_unit()
            .unwrap()
            .unwrap()
            .changes
            .len(),
        1
    );
    let reading = Options {
        read_only: true,
        ..options()
    };
    let reader = Bench::open(bench.closed(), reading).unwrap();
    assert_eq!(reader.engine.changes_start().unwrap(), start);
    assert!(reader.engine.changes_end().unwrap() > start);
    assert_eq!(
        brief(&follow(&reader, start).next_unit().unwrap().unwrap()),
        ["r put key 5"]
    );
}

fn reading(image: Image) -> Bench {
    let options = Options {
        read_only: true,
        ..options()
    };
    Bench::open(image, options).unwrap()
}

#[test]
fn a_reader_of_a_store_without_a_feed_has_none() {
    let bench = Bench::open(Image::default(), options()).unwrap();
    bench.engine.region("r").unwrap();
    let reader = reading(bench.closed());
    let refused = reader.engine.changes_start().unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidArgument);
    assert!(refused.to_string().contains("changes_kept_bytes"));
}

#[test]
fn a_reader_takes_a_position_that_a_killed_writer_has_shown() {
    let bench = opened(Image::default());
    let region = bench.engine.region("r").unwrap();
    put(&bench, &region, b"key", b"value");
    let mut changes = follow(&bench, bench.engine.changes_start().unwrap());
    assert_eq!(units(&mut changes).len(), 2);
    let reader = reading(bench.device.image());
    assert!(units(&mut follow(&reader, changes.position())).is_empty());
}

#[test]
fn a_reader_of_a_small_store_tells_where_the_feed_ends() {
    let mut bench = Bench::open(Image::default(), options()).unwrap();
    for round in 0..2 {
        let region = bench.engine.region("r").unwrap();
        put(&bench, &region, &name(round), b"before");
        bench.engine.checkpoint().unwrap();
        bench = Bench::open(bench.closed(), options()).unwrap();
    }
    let bench = opened(bench.closed());
    let region = bench.engine.region("r").unwrap();
    put(&bench, &region, b"key", b"value");
    let end = bench.engine.changes_end().unwrap();
    assert_eq!(reading(bench.closed()).engine.changes_end().unwrap(), end);
}

#[test]
fn changes_of_a_run_without_a_feed_are_not_passed_over() {
    let bench = opened(Image::default());
    for name in ["r", "s"] {
        let region = bench.engine.region(name).unwrap();
        put(&bench, &region, b"key", b"value");
    }
    let position = bench.engine.changes_end().unwrap();
    let between = Bench::open(bench.closed(), options()).unwrap();
    between.engine.drop_region("r").unwrap();
    let region = between.engine.region("r").unwrap();
    put(&between, &region, b"other", b"value");
    let bench = opened(between.closed());
    let refused = refusal(&bench, position.into());
    assert_eq!(refused.kind(), ErrorKind::NotFound, "{refused}");
    let start = bench.engine.changes_start().unwrap();
    assert!(units(&mut follow(&bench, start)).is_empty());
}

#[test]
fn a_drop_that_wrote_nothing_to_the_log_is_not_passed_over() {
    let bench = Bench::open(Image::default(), options()).unwrap();
    let region = bench.engine.region("r").unwrap();
    put(&bench, &region, b"key", b"value");
    bench.engine.checkpoint().unwrap();
    // A run with a feed that writes nothing.
    let bench = opened(bench.closed());
    let position = bench.engine.changes_end().unwrap();
    let between = Bench::open(bench.closed(), options()).unwrap();
    let before = between.engine.subsystems.storage.log.tail();
    between.engine.drop_region("r").unwrap();
    assert_eq!(between.engine.subsystems.storage.log.tail(), before);
    let bench = opened(between.closed());
    assert_eq!(refusal(&bench, position.into()).kind(), ErrorKind::NotFound);
}

#[test]
fn a_feed_begins_where_it_was_turned_on_and_not_at_loads_before() {
    let bench = Bench::open(Image::default(), options()).unwrap();
    let region = bench.engine.region("r").unwrap();
    let mut pairs = Listed::of(&[(b"a", &[1; 300]), (b"m", &[2; 2])]);
    bench.engine.ingest(&region, &mut pairs).unwrap();
    put(&bench, &region, b"key", b"value");
    let bench = opened(bench.closed());
    let start = bench.engine.changes_start().unwrap();
    assert!(units(&mut follow(&bench, start)).is_empty());
    let region = bench.engine.region("r").unwrap();
    put(&bench, &region, b"next", b"value");
    // It stays so in later runs.
    let bench = opened(bench.closed());
    assert_eq!(bench.engine.changes_start().unwrap(), start);
    assert_eq!(briefs(&mut follow(&bench, start)), [["r put next 5"]]);
}

#[test]
fn a_put_beside_a_reader_gives_up_no_more_log_than_it_needs() {
    let small = Options {
        volume_bytes_max: 64 << 20,
        changes_kept_bytes: 1 << 30,
        ..options()
    };
    let bench = Bench::open(Image::default(), small).unwrap();
    let region = bench.engine.region("r").unwrap();
    fill(&bench, &region, 20, 60 << 20).unwrap();
    bench.engine.checkpoint().unwrap();
    let storage = &bench.engine.subsystems.storage;
    let reader = storage.views.load_full();
    let failed = fill(&bench, &region, 20, 1 << 30).unwrap_err();
    assert_eq!(failed.kind(), ErrorKind::OutOfSpace);
    let kept = storage.feed.idle_bytes();
    assert!(kept >= 2 * SEGMENT_BYTES, "{kept}");
    drop(reader);
    fill(&bench, &region, 20, 60 << 20).unwrap();
}

#[test]
fn damage_in_log_that_only_a_feed_needs_leaves_the_rest_of_the_feed() {
    let bench = opened(Image::default());
    let region = bench.engine.region("r").unwrap();
    fill(&bench, &region, 5, 20 << 20).unwrap();
    bench.engine.checkpoint().unwrap();
    let end = bench.engine.changes_end().unwrap();
    let (start, segment) = {
        let numbers = bench.engine.subsystems.storage.feed.kept();
        let allocator = bench.engine.subsystems.storage.allocator.lock();
        let mut segments = allocator.log_segments(crate::checkpoint::catalogue::MAIN_LOG);
        segments.retain(|(_, sequence)| numbers.contains(sequence));
        segments.sort_unstable_by_key(|(_, sequence)| *sequence);
        (segments[2].1, segments[2].0)
    };
    bench.engine.subsystems.storage.feed.give_up_before(start);
    bench.engine.checkpoint().unwrap();
    bench.put(&region, b"key", b"value").unwrap();
    bench.engine.checkpoint().unwrap();
    for within in (4096..2 << 20).step_by(4096) {
        bench.device.flip_bit(segment.offset_bytes() + within, 3);
    }
    let start = bench.engine.changes_start().unwrap();
    assert!(start < end);
    assert!(!units(&mut follow(&bench, start)).is_empty());
    assert_eq!(refusal(&bench, 8).kind(), ErrorKind::NotFound);
}

#[test]
fn kept_log_leaves_the_room_to_lay_values_together() {
    let bench = opened(Image::default());
    let region = bench.engine.region("r").unwrap();
    fill(&bench, &region, 300, KEPT_BYTES + (32 << 20)).unwrap();
    bench.engine.checkpoint().unwrap();
    bench.engine.compact_all(&mut |_| ()).unwrap();
    let subsystems = &bench.engine.subsystems;
    assert!(subsystems.storage.feed.idle_bytes() > KEPT_BYTES / 2);
    assert!(subsystems.space.has_space_to_reorganise());
}

#[test]
fn the_end_is_told_when_the_segment_of_the_last_known_end_was_given_up() {
    let hardly = Options {
        changes_kept_bytes: 1,
        ..options()
    };
    let bench = Bench::open(Image::default(), hardly).unwrap();
    let region = bench.engine.region("r").unwrap();
    for round in 0..80 {
        put(&bench, &region, &name(round), &[7; 100 << 10]);
        let end = bench.engine.changes_end().unwrap();
        put(&bench, &region, &name(round), &[8; 100 << 10]);
        bench.engine.checkpoint().unwrap();
        assert!(bench.engine.changes_end().unwrap() > end, "round {round}");
        assert!(bench.engine.changes_start().is_ok());
    }
}

#[test]
fn whoever_asks_for_room_until_none_is_given_up_comes_to_an_end() {
    let bench = opened(Image::default());
    let region = bench.engine.region("r").unwrap();
    fill(&bench, &region, 5, 20 << 20).unwrap();
    bench.engine.checkpoint().unwrap();
    let subsystems = &bench.engine.subsystems;
    let idle = subsystems.storage.feed.idle_bytes() / SEGMENT_BYTES;
    assert!(idle > 5, "{idle}");
    let mut count = 0;
    while subsystems.versions.give_up_kept_for(1).unwrap() {
        count += 1;
        assert!(count <= idle, "nothing is given up");
    }
    assert_eq!((count, subsystems.storage.feed.idle_bytes()), (idle, 0));
}

#[test]
fn no_load_fails_because_of_log_that_is_kept() {
    let small = Options {
        volume_bytes_max: 96 << 20,
        changes_kept_bytes: 1 << 30,
        ..options()
    };
    let bench = Bench::open(Image::default(), small).unwrap();
    let region = bench.engine.region("r").unwrap();
    let long = vec![7; 12 << 20];
    for round in 0..6 {
        fill(&bench, &region, 5, 40 << 20).unwrap();
        let loaded = bench.engine.region(&format!("loaded {round}")).unwrap();
        let mut pairs = Listed::of(&[(b"a", &long), (b"b", &long)]);
        bench.engine.ingest(&loaded, &mut pairs).unwrap();
        bench
            .engine
            .drop_region(&format!("loaded {round}"))
            .unwrap();
    }
    assert_eq!(bench.problems(), Vec::<String>::new());
}
