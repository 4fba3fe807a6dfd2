//! The change feed.

mod following;
mod keeping;
mod model;

use std::collections::BTreeMap;
use std::ops::Bound;
use std::time::{Duration, UNIX_EPOCH};

use kreon_base::{ErrorKind, RegionId, SEGMENT_BYTES, Timestamp};

use super::*;
use crate::changes::{Change, ChangeUnit, Changed, Changes, Position};

/// Kept by the stores here.
const KEPT_BYTES: u64 = 64 << 20;

fn feeding() -> Options {
    Options {
        changes_kept_bytes: KEPT_BYTES,
        ..options()
    }
}

fn opened(image: Image) -> Bench {
    Bench::open(image, feeding()).unwrap()
}

/// A put that is durable on return.
fn put(bench: &Bench, region: &RegionState, key: &[u8], value: &[u8]) {
    bench.put(region, key, value).unwrap();
    bench.engine.sync().unwrap();
}

fn batch(bench: &Bench, region: &RegionState, keys: &[&[u8]], value: &[u8]) {
    let operation = |key: &&'_ [u8]| -> Vec<u8> { key.to_vec() };
    let keys: Vec<_> = keys.iter().map(operation).collect();
    let operations: Vec<_> = keys
        .iter()
        .map(|key| Operation {
            region,
            key,
            value: Some(value),
            is_range: false,
            terms: Terms::default(),
        })
        .collect();
    let engine = &bench.engine;
    engine.write(&operations, Durability::Buffered).unwrap();
}

/// Values of so many bytes, until the log has grown by `bytes`.
fn fill(bench: &Bench, region: &RegionState, keys: u32, bytes: u64) -> Result<()> {
    let value = vec![7; 100 << 10];
    for number in 0..bytes.div_ceil(value.len() as u64) {
        bench.put(region, &name(number as u32 % keys), &value)?;
    }
    Ok(())
}

/// The units that there are by now.
fn units(changes: &mut Changes) -> Vec<ChangeUnit> {
    std::iter::from_fn(|| changes.next_unit().unwrap()).collect()
}

/// A unit in brief.
fn brief(unit: &ChangeUnit) -> Vec<String> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let change = |change: &Change| {
        let region = change.name.as_deref().unwrap_or("?");
        let what = match &change.what {
            Changed::Put { key, value, .. } => format!("put {} {}", text(key), value.len()),
            Changed::Delete { key } => format!("delete {}", text(key)),
            Changed::DeleteRange { start, end } => {
                format!("range {} {:?}", text(start), end.as_deref().map(text))
            }
            Changed::Made => "made".to_owned(),
            Changed::Dropped => "dropped".to_owned(),
            Changed::Loaded { first, last } => format!("loaded {} {}", text(first), text(last)),
        };
        format!("{region} {what}")
    };
    unit.changes.iter().map(change).collect()
}

fn briefs(changes: &mut Changes) -> Vec<Vec<String>> {
    units(changes).iter().map(brief).collect()
}

fn follow(bench: &Bench, from: Position) -> Changes {
    bench.engine.changes(from).unwrap()
}

fn refusal(bench: &Bench, from: u64) -> Error {
    let refused = bench.engine.changes(Position::from(from));
    refused.expect_err("a feed began")
}

#[test]
fn a_feed_shows_whole_units_in_their_order_up_to_the_durable_end() {
    let bench = opened(Image::default());
    let start = bench.engine.changes_start().unwrap();
    let mut changes = follow(&bench, start);
    let region = bench.engine.region("r").unwrap();
    assert_eq!(briefs(&mut changes), [["r made"]]);
    bench.put(&region, b"one", b"1").unwrap();
    batch(&bench, &region, &[b"two", b"three"], &[2; 100]);
    assert!(units(&mut changes).is_empty(), "it is not durable");
    bench.engine.sync().unwrap();
    let shown = [
        vec!["r put one 1"],
        vec!["r put two 100", "r put three 100"],
    ];
    assert_eq!(briefs(&mut changes), shown);
    assert_eq!(changes.position(), bench.engine.changes_end().unwrap());
    assert!(briefs(&mut changes).is_empty());
    let mut again = follow(&bench, start);
    assert_eq!(units(&mut again).len(), 3);
}

#[test]
fn deletions_ranges_and_expiries_are_shown_as_they_were_written() {
    let bench = opened(Image::default());
    let region = bench.engine.region("r").unwrap();
    let mut changes = follow(&bench, bench.engine.changes_end().unwrap());
    let expires = Some(Timestamp::of_ms(1 << 45));
    let operation = Operation {
        region: &region,
        key: b"key",
        value: Some(b"value"),
        is_range: false,
        terms: Terms::until(expires),
    };
    let deletion = Operation {
        value: None,
        terms: Terms::default(),
        ..operation
    };
    let bounds = |end: Bound<Vec<u8>>| DeletedRange::of((Bound::Included(b"a".to_vec()), end));
    let before = bounds(Bound::Excluded(b"b".to_vec())).unwrap().unwrap();
    let all = bounds(Bound::Unbounded).unwrap().unwrap();
    let engine = &bench.engine;
    for operation in [
        operation,
        deletion,
        before.operation(&region),
        all.operation(&region),
    ] {
        engine.write(&[operation], Durability::Sync).unwrap();
    }
    let shown = units(&mut changes);
    let Changed::Put { expires: told, .. } = &shown[0].changes[0].what else {
        panic!("{shown:?}");
    };
    let end = UNIX_EPOCH + Duration::from_millis(1 << 45);
    assert_eq!(*told, Some(end));
    let shown: Vec<_> = shown.iter().flat_map(brief).collect();
    let expected = [
        "r put key 5",
        "r delete key",
        "r range a Some(\"b\")",
        "r range a None",
    ];
    assert_eq!(shown, expected);
}

#[test]
fn values_and_batches_over_several_segments_are_shown_whole() {
    let bench = opened(Image::default());
    let region = bench.engine.region("r").unwrap();
    let start = bench.engine.changes_end().unwrap();
    let long: Vec<u8> = (0..5_000_000u32).map(|n| (n % 251) as u8).collect();
    put(&bench, &region, b"long", &long);
    batch(&bench, &region, &[b"a", b"b", b"c"], &vec![3; 1_500_000]);
    put(&bench, &region, b"last", b"1");
    let mut changes = follow(&bench, start);
    let shown = units(&mut changes);
    assert_eq!(shown.len(), 3);
    let Changed::Put { value, .. } = &shown[0].changes[0].what else {
        panic!("no put");
    };
    assert!(*value == long);
    assert_eq!(shown[1].changes.len(), 3);
    for unit in &shown {
        let left = units(&mut follow(&bench, unit.end)).len();
        let at = shown.iter().position(|other| other == unit).unwrap();
        assert_eq!(left, shown.len() - at - 1, "each end is a position");
    }
}

#[test]
fn a_position_is_good_in_later_runs_and_after_crashes() {
    let mut bench = opened(Image::default());
    let mut positions = vec![bench.engine.changes_start().unwrap()];
    for round in 0..12 {
        let region = bench.engine.region("r").unwrap();
        put(
            &bench,
            &region,
            &name(round),
            &vec![1; 3000 * round as usize],
        );
        positions.push(bench.engine.changes_end().unwrap());
        if round % 3 == 0 {
            bench.engine.checkpoint().unwrap();
        }
        let image = match round % 2 {
            0 => bench.closed(),
            _ => bench.device.image(),
        };
        bench = opened(image);
        for (at, position) in positions.iter().enumerate() {
            let shown = briefs(&mut follow(&bench, *position));
            let puts = shown.iter().filter(|unit| unit[0].contains("put"));
            assert_eq!(puts.count(), round as usize + 1 - at, "round {round}");
        }
    }
}

#[test]
fn positions_within_units_and_ahead_of_the_end_are_refused() {
    let bench = opened(Image::default());
    let region = bench.engine.region("r").unwrap();
    let from = u64::from(bench.engine.changes_end().unwrap());
    batch(&bench, &region, &[b"a", b"b"], &[1; 100]);
    bench.engine.sync().unwrap();
    let end = u64::from(bench.engine.changes_end().unwrap());
    assert!(bench.engine.changes(Position::from(from)).is_ok());
    for within in (from + 1..from + 200).step_by(7) {
        let refused = refusal(&bench, within);
        assert_eq!(refused.kind(), ErrorKind::InvalidArgument);
        assert!(refused.to_string().contains("within"), "{refused}");
    }
    assert!(refusal(&bench, end + 8).to_string().contains("ahead"));
    assert_eq!(refusal(&bench, 8).kind(), ErrorKind::NotFound);
}

#[test]
fn without_the_option_there_is_no_feed() {
    let bench = Bench::open(Image::default(), options()).unwrap();
    let refused = refusal(&bench, 0);
    assert_eq!(refused.kind(), ErrorKind::InvalidArgument);
    assert!(
        refused.to_string().contains("changes_kept_bytes"),
        "{refused}"
    );
    assert!(bench.engine.changes_start().is_err());
}

#[test]
fn loads_are_told_when_their_pairs_can_be_read_and_drops_when_they_are_done() {
    let bench = opened(Image::default());
    let region = bench.engine.region("r").unwrap();
    let mut changes = follow(&bench, bench.engine.changes_end().unwrap());
    let mut pairs = Listed::of(&[(b"a", &[1; 300]), (b"m", &[2; 2]), (b"z", &[3; 3])]);
    bench.engine.ingest(&region, &mut pairs).unwrap();
    assert_eq!(briefs(&mut changes), [["r loaded a z"]]);
    assert_eq!(bench.get(&region, b"z").unwrap(), Some(vec![3; 3]));
    put(&bench, &region, b"k", b"1");
    bench.engine.drop_region("r").unwrap();
    assert_eq!(briefs(&mut changes), [["? put k 1"], ["r dropped"]]);
    let image = bench.device.image();
    let again = opened(image);
    let start = again.engine.changes_start().unwrap();
    let shown = ["r made", "r loaded a z", "r put k 1", "r dropped"];
    assert_eq!(briefs(&mut follow(&again, start)).concat(), shown);
}

/// Pairs of a load.
struct Listed(std::vec::IntoIter<(Vec<u8>, Vec<u8>)>, (Vec<u8>, Vec<u8>));

impl Listed {
    fn of(pairs: &[(&[u8], &[u8])]) -> Self {
        let pairs = pairs
            .iter()
            .map(|(key, value)| (key.to_vec(), value.to_vec()));
        Self(pairs.collect::<Vec<_>>().into_iter(), Default::default())
    }
}

impl Pairs for Listed {
    fn next(&mut self) -> Result<Option<(&[u8], &[u8])>> {
        let Some(pair) = self.0.next() else {
            return Ok(None);
        };
        self.1 = pair;
        Ok(Some((&self.1.0, &self.1.1)))
    }
}

#[test]
fn a_reader_shows_what_was_durable_at_the_end() {
    let bench = opened(Image::default());
    let region = bench.engine.region("r").unwrap();
    let start = bench.engine.changes_start().unwrap();
    put(&bench, &region, b"key", b"value");
    let reading = Options {
        read_only: true,
        ..options()
    };
    let reader = Bench::open(bench.closed(), reading).unwrap();
    let mut changes = follow(&reader, start);
    assert_eq!(briefs(&mut changes).concat(), ["r made", "r put key 5"]);
    assert!(!changes.wait(Duration::from_secs(60)).unwrap());
    assert_eq!(reader.engine.changes_start().unwrap(), start);
    assert!(reader.engine.changes_end().unwrap() >= changes.position());
}
