//! Calls beside a model of what they must do, with power cuts.

use std::ops::Bound;

use arbitrary::{Arbitrary, Result, Unstructured};
use kreon_engine::Durability;
use kreon_sim::{Image, Keep};
use kreon_torture::content::{self, Content, Digest};
use kreon_torture::script::{Change, Lifetime, Step, Until, Value};
use kreon_torture::store::Store;

use crate::case::with;

/// Most calls of one case.
const CALLS_MAX: usize = 24;

#[derive(Arbitrary, Clone, Copy, Debug)]
enum Call {
    Put {
        region: u8,
        key: u8,
        value: Length,
        sync: bool,
    },
    Delete {
        region: u8,
        key: u8,
    },
    Batch {
        region: u8,
        first: u8,
        count: u8,
        value: Length,
    },
    Get {
        region: u8,
        key: u8,
    },
    Scan {
        region: u8,
        from: u8,
        to: u8,
        back: bool,
    },
    Create {
        region: u8,
    },
    Drop {
        region: u8,
    },
    Checkpoint,
    Sync,
    Reopen,
    Snapshot,
    Release,
    PowerCut {
        keep: Kept,
    },
}

/// Lengths at which something changes: placement, pages, segments.
#[derive(Arbitrary, Clone, Copy, Debug)]
enum Length {
    Empty,
    Short(u8),
    Page(u16),
    OverSegment,
}

#[derive(Arbitrary, Clone, Copy, Debug)]
enum Kept {
    All,
    Nothing,
    SomeWrites(u64),
    SomeSectors(u64),
}

/// See the module's text.
pub fn operations(bytes: &[u8]) {
    with(bytes, |u| {
        let mut store = Store::on(Image::default(), &Content::new(), true);
        must(store.open().map(drop));
        let (mut giants, mut calls) = (1, 0);
        while !u.is_empty() && calls < CALLS_MAX {
            calls += 1;
            let Some(call) = affordable(u, &mut giants)? else {
                continue;
            };
            store = run(store, call);
        }
        is_sound(&mut store);
        Ok(())
    });
}

/// The next call, unless it would write another long value: they take most of the time.
fn affordable(u: &mut Unstructured<'_>, giants: &mut u32) -> Result<Option<Call>> {
    let call = Call::arbitrary(u)?;
    let long = Length::OverSegment;
    let is_giant = match call {
        Call::Put { value, .. } | Call::Batch { value, .. } => {
            std::mem::discriminant(&value) == std::mem::discriminant(&long)
        }
        _ => false,
    };
    if is_giant && *giants == 0 {
        return Ok(None);
    }
    *giants -= u32::from(is_giant);
    Ok(Some(call))
}

fn run(mut store: Store, call: Call) -> Store {
    let step = match call {
        Call::PowerCut { keep } => return cut(&store, keep),
        Call::Get { region, key } => {
            get(&mut store, &name(region), &key_of(key));
            return store;
        }
        Call::Scan {
            region,
            from,
            to,
            back,
        } => {
            scan(&mut store, &name(region), from, to, back);
            return store;
        }
        Call::Put {
            region,
            key,
            value,
            sync,
        } => {
            let change = change(region, key, Some(value));
            Step::Write(vec![change], durability(sync))
        }
        Call::Delete { region, key } => {
            Step::Write(vec![change(region, key, None)], Durability::Buffered)
        }
        Call::Batch {
            region,
            first,
            count,
            value,
        } => Step::Write(batch(region, first, count, value), Durability::Buffered),
        Call::Create { region } => Step::Create(name(region)),
        Call::Drop { region } => Step::Drop(name(region)),
        Call::Checkpoint => Step::Checkpoint,
        Call::Sync => Step::Sync,
        Call::Reopen => Step::Reopen,
        Call::Snapshot => Step::Snapshot,
        Call::Release => Step::Release,
    };
    let known = match &step {
        Step::Write(changes, _) => changes.iter().all(|c| store.model.has_region(&c.region)),
        Step::Drop(name) => store.model.has_region(name),
        _ => true,
    };
    if known {
        match store.step(&step) {
            Ok(outcome) => must(outcome),
            Err(what) => panic!("{step:?}: {what}"),
        }
    }
    store
}

/// Cuts the power and opens what is left.
fn cut(store: &Store, keep: Kept) -> Store {
    let mut keep = match keep {
        Kept::All => Keep::All,
        Kept::Nothing => Keep::Nothing,
        Kept::SomeWrites(seed) => Keep::SomeWrites { seed },
        Kept::SomeSectors(seed) => Keep::SomeSectors { seed },
    };
    let image = store.device.history().crash().image(&mut keep);
    let mut after = Store::on(image, &Content::new(), true);
    let content = must(after.open().and_then(content::read));
    let now = store.progress;
    let found = store.model.find(
        &content,
        now.durable_units..=now.begun_units,
        now.durable_region_changes..=now.begun_region_changes,
    );
    assert!(found.is_some(), "no prefix of what was acknowledged");
    after.rebase(&content);
    after
}

fn get(store: &mut Store, region: &str, key: &[u8]) {
    let held = store.model.content(store.model.end());
    let engine = must(store.open());
    let Some(pairs) = held.get(region) else {
        assert!(engine.existing_region(region).is_err());
        return;
    };
    let region = must(engine.existing_region(region));
    let found = must(engine.get(&region, key, None, Digest::of));
    assert_eq!(found, pairs.get(key).copied());
}

fn scan(store: &mut Store, region: &str, from: u8, to: u8, back: bool) {
    let held = store.model.content(store.model.end());
    let engine = must(store.open());
    let Some(pairs) = held.get(region) else {
        return;
    };
    let region = must(engine.existing_region(region));
    let (from, to) = (key_of(from), key_of(to));
    let bounds = (Bound::Included(from.clone()), Bound::Excluded(to.clone()));
    let mut scan = engine.scan(&region, engine.snapshot(), bounds);
    let expected = pairs.iter().filter(|(key, _)| **key >= from && **key < to);
    let mut expected: Vec<_> = expected.map(|(key, d)| (key.clone(), *d)).collect();
    if back {
        expected.reverse();
    }
    for pair in expected.into_iter().map(Some).chain([None]) {
        let show = |key: &[u8], value: &[u8]| (key.to_vec(), Digest::of(value));
        let found = if back {
            scan.next_back_with(show)
        } else {
            scan.next_with(show)
        };
        assert_eq!(must(found), pair);
    }
}

/// The whole content, in all ways, and the structures beneath.
fn is_sound(store: &mut Store) {
    let held = store.model.content(store.model.end());
    let engine = must(store.open());
    let found = must(content::read(engine));
    assert!(found == held, "{}", content::difference(&held, &found));
    assert_eq!(must(content::cross_check(engine, &found)), Ok(()));
    let report = must(engine.verify());
    assert!(report.problems.is_empty(), "{:?}", report.problems);
}

fn must<T>(outcome: kreon_base::Result<T>) -> T {
    outcome.unwrap_or_else(|error| panic!("on a device without faults: {error}"))
}

fn durability(sync: bool) -> Durability {
    if sync {
        Durability::Sync
    } else {
        Durability::Buffered
    }
}

fn name(region: u8) -> String {
    ["a", "b", "c"][usize::from(region % 3)].to_owned()
}

/// Few keys, so that they meet; some share their stored part, some are empty.
fn key_of(key: u8) -> Vec<u8> {
    match key % 16 {
        0 => Vec::new(),
        1..=3 => [&[b'k'; 1024][..], &[key]].concat(),
        4 => vec![b'x'; 65_536],
        _ => vec![b'k', key / 16, key],
    }
}

fn change(region: u8, key: u8, value: Option<Length>) -> Change {
    let len_bytes = value.map(|length| match length {
        Length::Empty => 0,
        Length::Short(bytes) => usize::from(bytes),
        Length::Page(bytes) => usize::from(bytes),
        Length::OverSegment => (2 << 20) + 100,
    });
    Change {
        region: name(region),
        key: key_of(key),
        value: len_bytes.map(|len_bytes| Value {
            len_bytes,
            seed: u64::from(key),
        }),
        until: None,
        lifetime: Lifetime::Unlimited,
    }
}

fn batch(region: u8, first: u8, count: u8, value: Length) -> Vec<Change> {
    let changes = (0..=count % 12).map(|n| {
        let value = (n % 4 != 3).then_some(if n == 0 { value } else { Length::Short(n) });
        let key = first.wrapping_add(n);
        let until = (n % 4 == 3 && first.is_multiple_of(4)).then(|| match first % 32 {
            0 => Until::Last,
            _ => Until::Before(key_of(key.wrapping_mul(7))),
        });
        Change {
            until,
            ..change(region.wrapping_add(n / 8), key, value)
        }
    });
    changes.collect()
}
