//! Joiners that are slower than their primary, or end at the wrong moment.

mod joining;

use std::sync::Arc;
use std::time::Duration;

use kreon_base::{Error, ErrorKind, Lsn};
use kreon_sim::SimOptions;
use kreon_wire::Kind;

use joining::{Group, group, member, put, sparse};

#[test]
fn a_joiner_that_takes_nothing_holds_up_nobody_and_ends_equal() {
    let mut group = group(sparse());
    group.joiner.link.shut(true);
    // Many times the buffers of the log, and many spills.
    put(group.primary.engine(), 300..9000);
    group.primary.engine().checkpoint().unwrap();
    let standing = group.standing();
    assert!(!standing.is_counted && standing.ended.is_none());
    assert!(
        standing.is_log_behind && standing.owed_bytes > 128 << 10,
        "{standing:?}"
    );
    group.joiner.link.shut(false);
    group.copy_all();
    assert!(group.standing().is_log_behind, "the log comes at the end");
    group.complete().unwrap();
    let standing = group.standing();
    assert!(standing.is_counted && !standing.is_log_behind && standing.owed_bytes == 0);
    put(group.primary.engine(), 9000..9400);
    group.is_equal(9400);
}

#[test]
fn a_joiner_catches_up_while_the_primary_goes_on() {
    let mut group = group(sparse());
    group.joiner.link.shut(true);
    put(group.primary.engine(), 300..3000);
    let engine = Arc::clone(group.primary.engine());
    let writing = std::thread::spawn(move || put(&engine, 3000..9000));
    group.joiner.link.shut(false);
    group.copy_all();
    group.complete().unwrap();
    assert!(group.standing().is_counted);
    writing.join().unwrap();
    group.is_equal(9000);
}

#[test]
fn a_joiner_whose_link_fails_and_recovers_again_and_again_ends_equal() {
    let mut group = group(sparse());
    let mut count = 300;
    for round in 0..4 {
        group.joiner.link.shut(true);
        put(group.primary.engine(), count..count + 1500);
        count += 1500;
        group.joiner.link.shut(false);
        let resync = group.resync.as_mut().unwrap();
        for _ in 0..20 * round {
            resync.copy(group.primary.mirror(), &*group.below).unwrap();
        }
        put(group.primary.engine(), count..count + 200);
        count += 200;
    }
    group.copy_all();
    group.complete().unwrap();
    group.is_equal(count);
}

#[test]
fn a_joiner_does_not_count_before_it_has_caught_up() {
    let mut group = group(sparse());
    group.joiner.link.shut(true);
    put(group.primary.engine(), 300..3000);
    group.joiner.link.shut(false);
    group.copy_all();
    group.joiner.link.shut(true);
    std::thread::scope(|scope| {
        let completing = scope.spawn(|| group.complete());
        // Its window is full at once: the primary goes on, and alone answers for what it writes.
        put(group.primary.engine(), 3000..6000);
        group.primary.engine().sync().unwrap();
        let standing = group.standing();
        assert!(!standing.is_counted && !completing.is_finished());
        assert_eq!(group.primary.mirror().landed(), Lsn::MAX);
        group.joiner.link.shut(false);
        completing.join().unwrap().unwrap();
    });
    assert!(group.standing().is_counted);
    group.is_equal(6000);
}

#[test]
fn a_joiner_without_space_for_what_is_written_meanwhile_does_not_join() {
    let mut group = group(SimOptions {
        space_bytes_max: 24 << 20,
        ..sparse()
    });
    put(group.primary.engine(), 300..6000);
    let copied = loop {
        let resync = group.resync.as_mut().unwrap();
        match resync.copy(group.primary.mirror(), &*group.below) {
            Ok(true) => {}
            Ok(false) => break group.complete(),
            Err(error) => break Err(error),
        }
    };
    let error = copied.unwrap_err();
    assert!(!group.standing().is_counted, "{error}");
    group.primary.mirror().remove(member());
    put(group.primary.engine(), 6000..6100);
    group.primary.abandon("the test ends").unwrap();
    group.joiner.link.cut();
}

/// A joiner that has begun to count and takes nothing any more, while `complete` waits for it.
fn stops_on_trial(group: &mut Group) {
    group.joiner.link.shut_behind(Kind::Complete);
    group.copy_all();
}

fn await_trial(group: &Group) {
    while !group.standing().is_counted {
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_joiner_whose_stream_ends_while_its_first_checkpoint_is_made_stops_nobody() {
    for is_told in [true, false] {
        let mut group = group(sparse());
        stops_on_trial(&mut group);
        let group = &group;
        let mirror = group.primary.mirror();
        std::thread::scope(|scope| {
            let completing = scope.spawn(|| group.complete());
            await_trial(group);
            assert_ne!(mirror.landed(), Lsn::MAX);
            match is_told {
                true => mirror.end(member(), Error::new(ErrorKind::Closed, "the link was cut")),
                // The next packet finds out.
                false => {
                    group.joiner.link.cut();
                    put(group.primary.engine(), 300..301);
                }
            }
            assert!(completing.join().unwrap().is_err());
            put(group.primary.engine(), 301..400);
            group.primary.engine().sync().unwrap();
        });
        assert!(!group.standing().is_counted);
        assert_eq!(mirror.landed(), Lsn::MAX);
        mirror.remove(member());
        group.primary.engine().checkpoint().unwrap();
        group.primary.abandon("the test ends").unwrap();
        group.joiner.link.cut();
    }
}

#[test]
fn a_joiner_that_counts_and_takes_nothing_is_waited_for_until_it_is_removed() {
    let mut group = group(sparse());
    stops_on_trial(&mut group);
    let group = &group;
    std::thread::scope(|scope| {
        let completing = scope.spawn(|| group.complete());
        await_trial(group);
        group.primary.mirror().remove(member());
        let error = completing.join().unwrap().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
    });
    group.primary.engine().sync().unwrap();
    group.primary.abandon("the test ends").unwrap();
    group.joiner.link.cut();
}

#[test]
fn a_copy_that_would_never_end_ends_when_its_joiner_is_removed() {
    let mut group = group(sparse());
    group.joiner.link.shut(true);
    put(group.primary.engine(), 300..3000);
    group.joiner.link.shut(false);
    group.copy_all();
    group.joiner.link.shut(true);
    let group = &group;
    std::thread::scope(|scope| {
        let completing = scope.spawn(|| group.complete());
        put(group.primary.engine(), 3000..6000);
        assert!(!completing.is_finished() && !group.standing().is_counted);
        group.primary.mirror().remove(member());
        let error = completing.join().unwrap().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
    });
    group.primary.engine().sync().unwrap();
    group.primary.abandon("the test ends").unwrap();
    group.joiner.link.cut();
}

#[test]
fn an_idle_store_is_durable_on_a_joiner_that_was_sent_no_log() {
    for is_behind in [false, true] {
        let mut group = group(sparse());
        let mut count = 300;
        if is_behind {
            group.joiner.link.shut(true);
            put(group.primary.engine(), 300..3000);
            count = 3000;
            group.joiner.link.shut(false);
        }
        let engine = Arc::clone(group.primary.engine());
        // Nothing changes any more: what is left of the log is a part of a block at most.
        engine.checkpoint().unwrap();
        group.copy_all();
        group.complete().unwrap();
        engine.sync().unwrap();
        let mirror = group.primary.mirror();
        mirror.barrier().unwrap();
        assert!(mirror.durable() >= engine.log_durable());
        engine.checkpoint().unwrap();
        group.is_equal(count);
    }
}
