//! Leaves: what a builder makes, and what damage makes of it.

use std::fmt::Write;

use arbitrary::{Result, Unstructured};
use kreon_base::{
    Attributes, Codec, Epoch, LogOffset, Lsn, PAGE_BYTES, PageBytes, PageNo, Payload, RegionId,
    Timestamp,
};
use kreon_format::*;

use crate::case::with;
use crate::forge::{Kind, Origin, forge};
use crate::keys::{any_key, near, stored};
use crate::seal;

/// Finds a key in a leaf.
pub type Search = fn(&Leaf<'_>, &[u8]) -> kreon_base::Result<LeafSearch>;

/// One version of a key, as it went into a leaf or came out of it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Version {
    /// The stored part of the key.
    stored: Vec<u8>,
    key_bytes: u32,
    lsn: Lsn,
    payload: Owned,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Owned {
    Logged(LogOffset, u32, Attributes),
    Inline(Vec<u8>, Attributes),
    Tombstone(LogOffset),
    Erased(LogOffset),
}

/// A leaf that was built, damaged or made up.
pub fn leaf(bytes: &[u8]) {
    leaf_with(bytes, |leaf, key| leaf.search(key));
}

/// As [`leaf`], with another search.
pub fn leaf_with(bytes: &[u8], search: Search) {
    with(bytes, |u| {
        let identity = NodeIdentity {
            store: StoreId(u.arbitrary()?),
            page: PageNo(u.int_in_range(0..=PAGE_NO_MAX)?),
            epoch: Epoch(u.int_in_range(0..=EPOCH_MAX)?),
            region: RegionId(u.arbitrary()?),
            level: 0,
        };
        let keys = any_keys(u)?;
        let mut page = [0; PAGE_BYTES];
        let Some((given, pointer)) = build(u, &keys, &identity, &mut page)? else {
            return Ok(());
        };
        let kind = Kind {
            marks: seal::NODE,
            store: identity.store,
            page: identity.page,
        };
        let origin = forge(u, &kind, &mut page)?;
        let checked = check_node(&page, identity.store, &pointer, 0).is_ok();
        match origin {
            Origin::Whole => assert!(checked, "a leaf that was just built"),
            Origin::Flipped => assert!(!checked, "a leaf with flipped bits"),
            _ => {}
        }
        if checked {
            assert_eq!(versions(&page).as_ref(), Some(&given));
        }
        let checksum = u32::from_le_bytes([page[0], page[1], page[2], page[3]]);
        let pointer = PagePointer {
            checksum,
            ..pointer
        };
        let keys = near(&keys);
        if check_node(&page, identity.store, &pointer, 0).is_ok() {
            is_usable(&page, &keys, &identity, search);
        }
        touch(&page, &keys);
        Ok(())
    });
}

fn any_keys(u: &mut Unstructured<'_>) -> Result<Vec<Vec<u8>>> {
    let mut keys = Vec::new();
    for _ in 0..u.int_in_range(1..=12)? {
        keys.push(any_key(u)?);
    }
    keys.sort();
    keys.dedup();
    Ok(keys)
}

/// Builds a leaf of versions of `keys`, as many as fit; `None` if there is none.
fn build(
    u: &mut Unstructured<'_>,
    keys: &[Vec<u8>],
    identity: &NodeIdentity,
    page: &mut PageBytes,
) -> Result<Option<(Vec<Version>, PagePointer)>> {
    let (mut builder, mut versions) = (LeafBuilder::new(), Vec::new());
    for key in keys {
        let mut lsns = [u.arbitrary()?, u.int_in_range(0..=2)?, 0];
        lsns.sort_unstable_by(|a: &u64, b| b.cmp(a));
        let taken = if u.ratio(1, 3)? { 3 } else { 1 };
        let mut last = None;
        for lsn in lsns.into_iter().rev().take(taken).rev() {
            if last.replace(lsn) == Some(lsn) {
                continue;
            }
            let payload = any_payload(u, key.len())?;
            let (lsn, used) = (Lsn(lsn), builder.used_bytes());
            let fits = builder.fits(key, lsn, payload.borrow());
            assert_eq!(builder.push(key, lsn, payload.borrow()).is_ok(), fits);
            if fits {
                versions.push(Version {
                    stored: stored(key).to_vec(),
                    key_bytes: key.len() as u32,
                    lsn,
                    payload,
                });
            } else {
                assert_eq!(builder.used_bytes(), used, "a refused entry took room");
            }
        }
    }
    let used_bytes = builder.used_bytes();
    let Ok(pointer) = builder.finish(identity, page) else {
        assert!(versions.is_empty());
        return Ok(None);
    };
    let leaf = Leaf::open(page).ok();
    assert_eq!(leaf.map(|leaf| leaf.used_bytes()), Some(used_bytes));
    Ok(Some((versions, pointer)))
}

fn any_attributes(u: &mut Unstructured<'_>) -> Result<Attributes> {
    let expires: Option<u64> = u.arbitrary()?;
    let codec = *u.choose(&Codec::ALL)?;
    Ok(Attributes::expiring(expires.map(Timestamp::of_ms)).with_codec(codec))
}

fn any_payload(u: &mut Unstructured<'_>, key_bytes: usize) -> Result<Owned> {
    let offset = LogOffset(u.int_in_range(0..=LOG_OFFSET_MAX)?);
    Ok(match u.int_in_range(0..=3)? {
        3 if key_bytes <= LONG_KEY_STORED_BYTES => Owned::Erased(LogOffset(0)),
        3 => Owned::Erased(offset),
        0 => Owned::Tombstone(offset),
        1 if key_bytes <= LONG_KEY_STORED_BYTES => {
            let len_bytes = u.int_in_range(0..=INLINE_VALUE_BYTES_MAX)?;
            Owned::Inline(vec![7; len_bytes], any_attributes(u)?)
        }
        _ => {
            let attributes = any_attributes(u)?;
            let least = attributes.stored_bytes() as u32;
            let value_bytes = u.int_in_range(least..=(1 << 30) + least)?;
            Owned::Logged(offset, value_bytes, attributes)
        }
    })
}

impl Owned {
    fn borrow(&self) -> Payload<'_> {
        match self {
            Self::Logged(offset, value_bytes, attributes) => Payload::Logged {
                offset: *offset,
                value_bytes: *value_bytes,
                attributes: *attributes,
            },
            Self::Inline(value, attributes) => Payload::Inline {
                value,
                attributes: *attributes,
            },
            Self::Tombstone(offset) => Payload::Tombstone { offset: *offset },
            Self::Erased(key_at) => Payload::Erased { key_at: *key_at },
        }
    }

    fn of(payload: Payload<'_>) -> Self {
        match payload {
            Payload::Logged {
                offset,
                value_bytes,
                attributes,
            } => Self::Logged(offset, value_bytes, attributes),
            Payload::Inline { value, attributes } => Self::Inline(value.to_vec(), attributes),
            Payload::Tombstone { offset } => Self::Tombstone(offset),
            Payload::Erased { key_at } => Self::Erased(key_at),
        }
    }
}

impl Version {
    fn is_long(&self) -> bool {
        self.key_bytes as usize > LONG_KEY_STORED_BYTES
    }
}

/// All versions in a leaf, if each of them can be read.
fn versions(page: &PageBytes) -> Option<Vec<Version>> {
    let leaf = Leaf::open(page).ok()?;
    (0..leaf.len())
        .map(|index| {
            let mut stored = Vec::new();
            leaf.key_into(index, &mut stored).ok()?;
            let entry = leaf.entry(index).ok()?;
            Some(Version {
                stored,
                key_bytes: entry.key_bytes,
                lsn: entry.lsn,
                payload: Owned::of(entry.payload),
            })
        })
        .collect()
}

/// What a checked leaf must be, however it came about: in order, searched as by a naive scan, and
/// written again with the same content.
fn is_usable(page: &PageBytes, probes: &[Vec<u8>], identity: &NodeIdentity, search: Search) {
    let Some(versions) = versions(page) else {
        panic!("a checked leaf has an entry that cannot be read");
    };
    let Ok(leaf) = Leaf::open(page) else {
        panic!("a checked leaf does not open");
    };
    let ordered = versions.is_sorted_by(|a, b| {
        let same_order = match (a.is_long(), b.is_long()) {
            (false, false) => a.lsn > b.lsn,
            (long, _) => !long || b.is_long(),
        };
        a.stored < b.stored || a.stored == b.stored && same_order
    });
    assert!(ordered, "{versions:?}");
    let own = versions.iter().map(|version| version.stored.clone());
    for key in own.chain(probes.iter().cloned()) {
        let found = search(&leaf, &key).ok();
        assert_eq!(found, Some(scan(&versions, &key)), "{key:?}");
    }
    is_built_again(&leaf, &versions, identity);
}

/// What a search must find.
fn scan(versions: &[Version], key: &[u8]) -> LeafSearch {
    let long = key.len() > LONG_KEY_STORED_BYTES;
    let of_key = |v: &Version| v.stored == stored(key) && v.is_long() == long;
    let behind = |v: &Version| {
        v.stored.as_slice() > stored(key) || v.stored == stored(key) && v.is_long() && !long
    };
    let place_behind = versions.iter().position(behind).unwrap_or(versions.len());
    match versions.iter().position(of_key) {
        None => LeafSearch::Absent(place_behind),
        Some(first) if long => LeafSearch::Long {
            first,
            end: first + versions.iter().filter(|v| of_key(v)).count(),
        },
        Some(first) => LeafSearch::Found(first),
    }
}

/// Builds a leaf of the same entries, one by one and as a run.
fn is_built_again(leaf: &Leaf<'_>, given: &[Version], identity: &NodeIdentity) {
    let (mut one_by_one, mut run) = (LeafBuilder::new(), LeafBuilder::new());
    for version in given {
        let Version {
            stored,
            key_bytes,
            lsn,
            payload,
        } = version;
        let payload = payload.borrow();
        let pushed = one_by_one.push_stored(stored, *key_bytes, *lsn, payload);
        // The common prefix that a builder chooses is the longest, which need not be the shortest leaf.
        assert!(
            pushed.is_ok() || !has_longest_prefix(leaf, given),
            "{version:?}"
        );
        if pushed.is_err() {
            return;
        }
    }
    let copied = run.push_run(leaf, 0..given.len(), PAGE_BYTES).ok();
    for (mut builder, whole) in [(one_by_one, true), (run, copied == Some(given.len()))] {
        let mut page = [0; PAGE_BYTES];
        if whole && let Ok(pointer) = builder.finish(identity, &mut page) {
            assert!(check_node(&page, identity.store, &pointer, 0).is_ok());
            assert_eq!(versions(&page).as_deref(), Some(given));
        }
    }
}

fn has_longest_prefix(leaf: &Leaf<'_>, versions: &[Version]) -> bool {
    let (Some(first), Some(last)) = (versions.first(), versions.last()) else {
        return true;
    };
    let both = first.stored.iter().zip(&last.stored);
    both.take_while(|(a, b)| a == b).count() == leaf.prefix().len()
}

/// Calls everything that reads a leaf, whatever it is.
fn touch(page: &PageBytes, keys: &[Vec<u8>]) {
    let Ok(leaf) = Leaf::open(page) else {
        return;
    };
    let mut text = String::new();
    let _ = write!(text, "{leaf:?} {:?} {}", leaf.region(), leaf.used_bytes());
    let mut key = Vec::new();
    for index in (0..=leaf.len()).chain([usize::MAX]) {
        assert!(index < leaf.len() || leaf.entry(index).is_err());
        let _ = leaf.entry(index);
        let _ = leaf.key_into(index, &mut key);
        let _ = leaf.search(&key);
    }
    for key in keys {
        if let Ok(LeafSearch::Found(at) | LeafSearch::Absent(at)) = leaf.search(key) {
            assert!(at <= leaf.len());
        }
    }
    let mut builder = LeafBuilder::new();
    let _ = builder.push_run(&leaf, 0..leaf.len(), PAGE_BYTES);
    let _ = builder.push_run(&leaf, 0..leaf.len(), PAGE_BYTES);
}
