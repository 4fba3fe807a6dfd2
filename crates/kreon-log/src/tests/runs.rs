//! The committed bytes of a log, as its mirror reads them.

use std::ops::Range;

use super::twin::Twin;
use super::*;
use crate::cut::{PAYLOAD_START, SEGMENT};

/// Ranges of the volume, neighbours joined.
fn joined(mut ranges: Vec<Range<u64>>) -> Vec<Range<u64>> {
    ranges.sort_by_key(|range| range.start);
    let mut joined: Vec<Range<u64>> = Vec::new();
    for range in ranges {
        match joined.last_mut() {
            Some(last) if last.end == range.start => last.end = range.end,
            _ => joined.push(range),
        }
    }
    joined
}

/// Reads everything from `at` on, with lengths that differ; what the runs were.
fn read_on(bench: &Bench, at: &mut Lsn, dice: &mut u64) -> Vec<(u64, Vec<u8>)> {
    let mut runs = Vec::new();
    loop {
        *dice = dice.wrapping_mul(6364136223846793005).wrapping_add(1);
        let max_bytes = 1 + (*dice >> 33) as u32 % 90_000;
        let before = *at;
        let is_there = bench.reader().run(*at, max_bytes, |run| {
            assert_eq!(run.from, before);
            let header = match kreon_format::place_of(run.from).1 {
                PAYLOAD_START => u64::from(PAYLOAD_START),
                _ => 0,
            };
            assert_eq!(run.bytes.len() as u64, header + run.end.0 - run.from.0);
            assert!(run.end.0 - run.from.0 <= u64::from(max_bytes));
            runs.push((run.offset.0, run.bytes.to_vec()));
            *at = run.end;
        });
        if !is_there.unwrap() {
            return runs;
        }
    }
}

#[test]
fn the_runs_of_a_log_are_the_bytes_that_land_on_its_device() {
    let twin = Twin::new();
    let bench = Setup::default().open_with(twin.as_mirror());
    twin.make_durable(Lsn::MAX);
    let (mut at, mut dice, mut runs) = (LOG_START, 3, Vec::new());
    for round in 0..400_usize {
        let len = match round % 40 {
            7 => 70_000,
            // Over one, and over several ends of segments.
            11 => 3 << 20,
            19 => 600_000,
            _ => round * 53 % 9000,
        };
        let (_, end) = bench.put(b"key", &noise(len, round));
        match round % 3 {
            0 => runs.extend(read_on(&bench, &mut at, &mut dice)),
            1 => bench.log.sync(end).unwrap(),
            _ => {}
        }
        twin.land(&bench.log, at);
        if round % 10 == 0 {
            bench.log.write_out(end).unwrap();
        }
        if bench.space.given.load(Ordering::SeqCst) > SEGMENTS - 12 {
            break;
        }
    }
    bench.log.sync(bench.log.tail()).unwrap();
    runs.extend(read_on(&bench, &mut at, &mut dice));
    assert_eq!(at, bench.log.tail(), "all of it");
    let held = bench.device.bytes.lock();
    for (offset, bytes) in &runs {
        let offset = *offset as usize;
        assert!(
            held[offset..offset + bytes.len()] == bytes[..],
            "at {offset}"
        );
    }
    let read = runs.iter().map(|(at, bytes)| *at..*at + bytes.len() as u64);
    let written = bench.device.writes().into_iter();
    let written = written.map(|(start, end)| start..end);
    assert_eq!(joined(read.collect()), joined(written.collect()));
}

#[test]
fn a_run_ends_where_a_writer_still_copies_and_where_nothing_was_appended() {
    let bench = Setup::default().open();
    let run = |from| {
        let mut end = None;
        let is_there = bench
            .reader()
            .run(from, u32::MAX, |run| end = Some(run.end));
        is_there.map(|is_there| {
            assert_eq!(is_there, end.is_some());
            end
        })
    };
    assert_eq!(run(LOG_START).unwrap(), None);
    let (_, end) = bench.put(b"key", b"value");
    let current = bench.reader().buffers.current_full();
    let room = current.buffer().reserve(64);
    let (_, behind) = bench.put(b"key", b"behind");
    assert_eq!(run(LOG_START).unwrap(), Some(end));
    assert_eq!(run(end).unwrap(), None);
    match room {
        kreon_device::Reserve::Reserved(room) => bench.log.log_framing().pad(&current, room),
        _ => panic!("there is room"),
    }
    assert_eq!(run(end).unwrap(), Some(behind));
}

#[test]
fn a_run_of_what_is_not_in_memory_is_refused() {
    let bench = Setup {
        options: with_buffers(2),
        ..Setup::default()
    }
    .open();
    bench.push_out(2);
    let refused = |from| {
        let outcome = bench.reader().run(from, u32::MAX, |_| ());
        assert_eq!(outcome.unwrap_err().kind(), ErrorKind::InvalidArgument);
    };
    refused(LOG_START);
    refused(Lsn(bench.log.tail().0 + 3 * u64::from(SEGMENT)));
    let (_, end) = bench.put(b"key", b"value");
    bench.log.sync(end).unwrap();
    let checkpoint = bench.checkpoint(LOG_START);
    let (again, _) = bench.reopen(&checkpoint);
    let resume = again.log.tail();
    assert!(!again.reader().run(resume, u32::MAX, |_| ()).unwrap());
    let before = Lsn(resume.0 - 4096);
    assert!(again.reader().run(before, u32::MAX, |_| ()).is_err());
}

#[test]
fn a_tap_keeps_no_log_open() {
    let bench = Setup::default().open();
    let (device, space) = (Arc::clone(&bench.device), Arc::clone(&bench.space));
    drop(bench);
    let opening = Opening {
        history: LogHistory::empty(),
        incarnation: 1,
        log_device: None,
        mirror: None,
    };
    let bench = Bench::try_open(device, space, opening, with_buffers(2)).unwrap();
    let log = Arc::new(bench.log);
    let tap = crate::tap::LogTap::new(&log);
    let (_, end) = log.append_one(&put(b"key", b"value")).unwrap();
    assert_eq!(tap.tail().unwrap(), end);
    assert!(
        tap.run(LOG_START, u32::MAX, |run| assert_eq!(run.end, end))
            .unwrap()
    );
    drop(log);
    assert_eq!(Arc::strong_count(&bench.device), 3, "bench, pages, told");
    assert_eq!(tap.tail().unwrap_err().kind(), ErrorKind::Closed);
    tap.landed();
}
