//! Index nodes: what a builder makes, and what damage makes of it.

use arbitrary::{Result, Unstructured};
use kreon_base::{Epoch, LogOffset, Lsn, PAGE_BYTES, PageBytes, PageNo, Payload, RegionId};
use kreon_format::*;

use crate::case::with;
use crate::forge::{Kind, Origin, forge};
use crate::keys::{any_key, near, stored};
use crate::pages::any_pointer;
use crate::seal;

/// An index node that was built, damaged or made up.
pub fn index_node(bytes: &[u8]) {
    with(bytes, |u| {
        let identity = NodeIdentity {
            store: StoreId(u.arbitrary()?),
            page: PageNo(u.int_in_range(0..=PAGE_NO_MAX)?),
            epoch: Epoch(u.int_in_range(0..=EPOCH_MAX)?),
            region: RegionId(u.arbitrary()?),
            // Nodes above leaves, which have filters, as often as all others.
            level: if u.arbitrary()? {
                1
            } else {
                u.int_in_range(2..=u8::MAX)?
            },
        };
        let pivots = any_pivots(u)?;
        let mut page = [0; PAGE_BYTES];
        let filters = any_filters(u, identity.level)?;
        let (given, pointer) = build(u, (&pivots, &filters), &identity, &mut page)?;
        let kind = Kind {
            marks: seal::NODE,
            store: identity.store,
            page: identity.page,
        };
        let origin = forge(u, &kind, &mut page)?;
        let (store, level) = (identity.store, identity.level);
        let checked = check_node(&page, store, &pointer, level).is_ok();
        match origin {
            Origin::Whole => assert!(checked, "an index node that was just built"),
            Origin::Flipped => assert!(!checked, "an index node with flipped bits"),
            _ => {}
        }
        if checked {
            assert_eq!(children(&page).as_ref(), Some(&given));
        }
        let checksum = u32::from_le_bytes([page[0], page[1], page[2], page[3]]);
        let pointer = PagePointer {
            checksum,
            ..pointer
        };
        let keys: Vec<_> = pivots.into_iter().map(|pivot| pivot.bytes).collect();
        let keys = near(&keys);
        if check_node(&page, store, &pointer, level).is_ok() {
            is_usable(&page, &keys, &identity);
        }
        touch(&page, &keys);
        separates(u)
    });
}

/// A pivot, and the child behind it with its filter; the first child has no pivot.
type Children = Vec<(Option<Pivot>, PagePointer, LeafFilter)>;

/// Pivots in order: of equal bytes the exact one first, and no second exact one.
fn any_pivots(u: &mut Unstructured<'_>) -> Result<Vec<Pivot>> {
    let mut pivots = Vec::new();
    for _ in 0..u.int_in_range(0..=12)? {
        let key = any_key(u)?;
        pivots.push(Pivot {
            bytes: stored(&key).to_vec(),
            ambiguous: u.ratio(1, 4)?,
        });
    }
    pivots.sort_by(|a, b| (&a.bytes, a.ambiguous).cmp(&(&b.bytes, b.ambiguous)));
    pivots.dedup_by(|b, a| a == b && !a.ambiguous);
    Ok(pivots)
}

/// Filters of a leaf or two, and none; above index nodes there are none.
fn any_filters(u: &mut Unstructured<'_>, level: u8) -> Result<Vec<LeafFilter>> {
    let mut filters = vec![LeafFilter::NONE];
    for _ in 0..if level == 1 {
        u.int_in_range(0..=2)?
    } else {
        0
    } {
        let mut builder = LeafBuilder::new();
        let offset = LogOffset(8);
        for number in 0..u.int_in_range(1..=160_u64)? {
            let payload = Payload::Tombstone { offset };
            // What no more fits is left out.
            let _ = builder.push(&number.to_be_bytes(), Lsn(0), payload);
        }
        let mut page = [0; PAGE_BYTES];
        let identity = NodeIdentity {
            store: StoreId(1),
            page: PageNo(1),
            epoch: Epoch(1),
            region: RegionId(1),
            level: 0,
        };
        let built = builder.finish(&identity, &mut page);
        let bits_per_key = u.int_in_range(1..=30)?;
        if built.is_ok()
            && let Ok(leaf) = Leaf::open(&page)
            && let Ok(filter) = FilterBuilder::new().build(&leaf, bits_per_key)
        {
            assert!(filter.may_hold(&0_u64.to_be_bytes()));
            filters.push(filter);
        }
    }
    Ok(filters)
}

/// Builds a node with a first child and one behind each pivot, as many as fit.
fn build(
    u: &mut Unstructured<'_>,
    (pivots, filters): (&[Pivot], &[LeafFilter]),
    identity: &NodeIdentity,
    page: &mut PageBytes,
) -> Result<(Children, PagePointer)> {
    let (mut builder, mut children) = (IndexBuilder::new(), Vec::new());
    let (first, filter) = (any_pointer(u)?, u.choose(filters)?);
    let pushed = builder.push(&Pivot::default(), first, filter);
    assert!(pushed.is_ok());
    children.push((None, first, filter.clone()));
    for pivot in pivots {
        let (child, filter) = (any_pointer(u)?, u.choose(filters)?);
        let fits = builder.fits(pivot, filter);
        let pushed = builder.push(pivot, child, filter);
        assert_eq!(pushed.is_ok(), fits);
        if fits {
            children.push((Some(pivot.clone()), child, filter.clone()));
        }
    }
    let used_bytes = builder.used_bytes();
    let Ok(pointer) = builder.finish(identity, page) else {
        panic!("an index node with a child does not finish");
    };
    let node = IndexNode::open(page).ok();
    assert_eq!(node.map(|node| node.used_bytes()), Some(used_bytes));
    Ok((children, pointer))
}

/// All children of a node, if each of them can be read.
fn children(page: &PageBytes) -> Option<Children> {
    let node = IndexNode::open(page).ok()?;
    (0..node.len())
        .map(|index| {
            let pivot = match index {
                0 => None,
                _ => Some(node.pivot(index).ok()?),
            };
            Some((pivot, node.child(index).ok()?, node.filter(index).ok()?))
        })
        .collect()
}

/// What a checked node must be, however it came about: in order, and routing as a naive scan does.
fn is_usable(page: &PageBytes, probes: &[Vec<u8>], identity: &NodeIdentity) {
    let Some(given) = children(page) else {
        panic!("a checked index node has a child that cannot be read");
    };
    let Ok(node) = IndexNode::open(page) else {
        panic!("a checked index node does not open");
    };
    let pivots: Vec<Pivot> = given
        .iter()
        .filter_map(|(pivot, ..)| pivot.clone())
        .collect();
    let ordered =
        pivots.is_sorted_by(|a, b| a.bytes < b.bytes || a.bytes == b.bytes && b.ambiguous);
    assert!(ordered, "{pivots:?}");
    let own = pivots.iter().map(|pivot| pivot.bytes.clone());
    for key in own.chain(probes.iter().cloned()) {
        assert_eq!(node.route(&key).ok(), Some(scan(&pivots, &key)), "{key:?}");
    }
    let mut builder = IndexBuilder::new();
    for (pivot, child, filter) in &given {
        let pivot = pivot.clone().unwrap_or_default();
        if builder.push(&pivot, *child, filter).is_err() {
            // The longest common prefix, which a builder chooses, need not make the shortest node.
            return;
        }
    }
    let mut again = [0; PAGE_BYTES];
    let built = builder.finish(identity, &mut again);
    assert!(built.is_ok_and(|p| check_node(&again, identity.store, &p, identity.level).is_ok()));
    assert_eq!(children(&again), Some(given));
}

/// Where a key must lead.
fn scan(pivots: &[Pivot], key: &[u8]) -> Route {
    let key = stored(key);
    let passed = |p: &&Pivot| key > &p.bytes[..] || key == &p.bytes[..] && !p.ambiguous;
    let ties = |p: &&Pivot| key == &p.bytes[..] && p.ambiguous;
    let first = pivots.iter().filter(passed).count();
    match pivots.iter().filter(ties).count() {
        0 => Route::Child(first),
        count => Route::Ambiguous {
            first,
            end: first + count + 1,
        },
    }
}

/// Calls everything that reads a node, whatever it is.
fn touch(page: &PageBytes, keys: &[Vec<u8>]) {
    let Ok(node) = IndexNode::open(page) else {
        return;
    };
    let _ = (node.level(), node.region(), node.used_bytes());
    let _ = format!("{node:?}");
    let mut pivot = Pivot::default();
    for index in (0..=node.len()).chain([usize::MAX]) {
        assert!(index < node.len() || node.child(index).is_err());
        let _ = node.child(index);
        let _ = node.pivot_into(index, &mut pivot);
        let _ = (node.filter(index), node.may_hold(index, &pivot.bytes));
    }
    for key in keys {
        if let Ok(Route::Child(child)) = node.route(key) {
            assert!(child < node.len());
        }
    }
}

/// The pivot between two keys stands between them.
fn separates(u: &mut Unstructured<'_>) -> Result<()> {
    let (mut left, mut right) = (any_key(u)?, any_key(u)?);
    if left > right {
        std::mem::swap(&mut left, &mut right);
    }
    let pivot = separator(&left, &right, left == right);
    assert!(pivot.bytes.len() <= LONG_KEY_STORED_BYTES);
    if pivot.ambiguous {
        assert_eq!(pivot.bytes, stored(&right));
    } else {
        assert!(left < pivot.bytes && pivot.bytes <= right);
    }
    Ok(())
}
