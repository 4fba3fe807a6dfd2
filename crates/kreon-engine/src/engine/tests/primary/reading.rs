//! What a get has met in memory, and whether that has landed.

use kreon_format::range_value;

use super::*;
use crate::read::Seen;

fn seen(primary: &Primary, region: &RegionState, key: &[u8]) -> (Option<Vec<u8>>, Seen) {
    primary
        .engine
        .get_seen(region, key, <[u8]>::to_vec)
        .unwrap()
}

impl Primary {
    /// Whether a get of `key` rests on what has landed only.
    fn is_landed(&self, region: &RegionState, key: &[u8]) -> bool {
        let (_, seen) = seen(self, region, key);
        seen.is_landed(self.engine.unlanded_from())
    }
}

#[test]
fn a_get_tells_the_newest_version_in_memory() {
    let primary = Primary::new();
    let region = primary.engine.region("r").unwrap();
    assert_eq!(seen(&primary, &region, b"a"), (None, Seen::default()));
    let start = primary.engine.log_tail();
    let first = primary.put(&region, b"a", b"1");
    let newest = |key: &[u8]| seen(&primary, &region, key).1.newest.unwrap();
    assert_eq!(newest(b"a"), start);
    let second = primary.put(&region, b"a", &[2; 500]);
    let (shown, met) = seen(&primary, &region, b"a");
    assert_eq!((shown.unwrap().len(), met.newest), (500, Some(first)));
    let deletion = Operation {
        value: None,
        ..put(&region, b"a", b"")
    };
    primary.engine.write_ahead(&[deletion]).unwrap();
    assert_eq!(seen(&primary, &region, b"a").0, None);
    assert_eq!(newest(b"a"), second, "deletions, too");
}

#[test]
fn a_deleted_range_is_met_by_all_of_its_keys() {
    let primary = Primary::new();
    let region = primary.engine.region("r").unwrap();
    primary.put(&region, b"b", b"old");
    primary.engine.checkpoint().unwrap();
    assert_eq!(
        seen(&primary, &region, b"b").1,
        Seen::default(),
        "from a level"
    );
    primary.put(&region, b"c", b"new");
    let start = primary.engine.log_tail();
    let value = range_value(Some(b"d"));
    let deletion = Operation {
        is_range: true,
        ..put(&region, b"a", &value)
    };
    primary.engine.write_ahead(&[deletion]).unwrap();
    for key in [&b"a"[..], b"b", b"c"] {
        let (shown, met) = seen(&primary, &region, key);
        assert_eq!((shown, met.newest), (None, Some(start)), "{key:?}");
    }
    assert_eq!(seen(&primary, &region, b"d").1, Seen::default());
    primary.put(&region, b"b", b"newer");
    assert!(seen(&primary, &region, b"b").1.newest > Some(start));
}

#[test]
fn a_get_is_not_landed_before_the_whole_unit_is() {
    let primary = Primary::new();
    let region = primary.engine.region("r").unwrap();
    primary.put(&region, b"before", b"value");
    let landed = primary.engine.log_tail();
    primary.members.land(&primary.engine, landed);
    let value = vec![3; 700];
    let batch = [
        put(&region, b"first", &value),
        put(&region, b"second", &value),
    ];
    let end = primary.engine.write_ahead(&batch).unwrap();
    let alone = primary.put(&region, b"alone", &value);
    let is_landed = |key: &str| primary.is_landed(&region, key.as_bytes());
    // All of the first record, then more, but not the end of the unit.
    let record = (end.0 - landed.0) / 2;
    for part in [0, 1, record, record + 8, 2 * record - 1] {
        primary.members.land(&primary.engine, Lsn(landed.0 + part));
        assert_eq!(primary.engine.unlanded_from(), landed);
        assert!(is_landed("before") && is_landed("nothing"));
        assert!(!is_landed("first") && !is_landed("second") && !is_landed("alone"));
    }
    primary.members.land(&primary.engine, end);
    assert!(is_landed("first") && is_landed("second") && !is_landed("alone"));
    assert_eq!(primary.engine.unlanded_from(), end);
    primary.members.land(&primary.engine, Lsn(alone.0 - 1));
    assert!(!is_landed("alone"));
    primary.members.land(&primary.engine, alone);
    assert!(is_landed("alone"));
    assert_eq!(primary.engine.unlanded_from(), primary.engine.log_tail());
}

#[test]
fn without_members_everything_has_landed() {
    let bench = Bench::open(Image::default(), options()).unwrap();
    let region = bench.engine.region("r").unwrap();
    bench.put(&region, b"key", b"value").unwrap();
    let (_, met) = bench.engine.get_seen(&region, b"key", |_| ()).unwrap();
    assert!(met.newest.is_some());
    assert!(met.is_landed(bench.engine.unlanded_from()));
}
