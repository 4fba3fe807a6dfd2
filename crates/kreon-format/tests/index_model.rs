//! Index nodes against the leaves below them.
#![allow(missing_docs)]

mod keys;
mod samples;

use keys::{Version, probes, versions};
use kreon_base::{ErrorKind, PAGE_BYTES, PageBytes};
use kreon_format::*;
use proptest::prelude::*;
use samples::{STORE, cases, identity, pointer};

/// The children of one node: consecutive parts of a sorted list of versions, and the pivots between them.
struct Children<'a> {
    shares: Vec<&'a [Version]>,
    pivots: Vec<Pivot>,
}

impl<'a> Children<'a> {
    /// Cuts `versions` behind each element for which `cuts` (repeated) is true.
    fn cut(versions: &'a [Version], cuts: &[bool]) -> Self {
        let mut cut = cuts.iter().cycle();
        let shares: Vec<_> = versions.chunk_by(|_, _| !cut.next().unwrap()).collect();
        let pivots = shares.windows(2).map(|pair| {
            let (left, right) = (&pair[0][pair[0].len() - 1].key, &pair[1][0].key);
            separator(left, right, left == right)
        });
        Self {
            pivots: [Pivot::default()].into_iter().chain(pivots).collect(),
            shares,
        }
    }

    /// Room of the first `count` children, computed differently from the builder.
    fn room_bytes(&self, count: usize) -> usize {
        let pivots = &self.pivots[1..count];
        let (Some(first), Some(last)) = (pivots.first(), pivots.last()) else {
            return NODE_HEADER_BYTES + 16;
        };
        let pairs = first.bytes.iter().zip(&last.bytes);
        let prefix = pairs.take_while(|(a, b)| a == b).count();
        let entries = pivots.iter().map(|pivot| {
            let key = pivot.bytes.len() - prefix;
            8 + 2 + 1 + if key < 256 { 1 } else { 2 } + key.saturating_sub(8) + 16
        });
        NODE_HEADER_BYTES + 16 + prefix + entries.sum::<usize>()
    }

    /// As many of the children as fit in a node.
    fn build(&self) -> (PageBytes, PagePointer, usize) {
        let mut builder = IndexBuilder::new();
        for (index, pivot) in self.pivots.iter().enumerate() {
            let fits = self.room_bytes(index + 1) <= PAGE_BYTES;
            assert_eq!(builder.fits(pivot, &LeafFilter::NONE), fits);
            if !fits {
                assert!(index >= 4, "room for three pivots at least");
                assert!(builder.push(pivot, pointer(0), &LeafFilter::NONE).is_err());
                break;
            }
            builder
                .push(pivot, pointer(index as u64), &LeafFilter::NONE)
                .unwrap();
            assert_eq!(
                (builder.len(), builder.used_bytes()),
                (index + 1, self.room_bytes(index + 1))
            );
        }
        let (count, mut page) = (builder.len(), [0xaa; PAGE_BYTES]);
        let pointer = builder.finish(&identity(5, 1), &mut page).unwrap();
        assert!(builder.is_empty());
        (page, pointer, count)
    }

    fn check_route(&self, node: &IndexNode<'_>, key: &[u8]) {
        let count = node.len();
        let (first, end) = match node.route(key).unwrap() {
            Route::Child(child) => (child, child + 1),
            Route::Ambiguous { first, end } => {
                assert!(end - first >= 2);
                assert!((first + 1..end).all(|n| self.pivots[n].ambiguous));
                assert!((first + 1..end).all(|n| key.starts_with(&self.pivots[n].bytes)));
                (first, end)
            }
        };
        assert!(first < end && end <= count);
        // Nothing outside the range has the key, and the key would be out of order there.
        assert!(
            self.shares[..first]
                .iter()
                .all(|share| share[share.len() - 1].key.as_slice() < key)
        );
        assert!(
            self.shares[end..count]
                .iter()
                .all(|share| key < share[0].key.as_slice())
        );
        // The range is no larger than necessary: an exact pivot decides.
        if let Some(pivot) = self.pivots.get(end).filter(|_| end < count) {
            assert!(key < pivot.bytes.as_slice());
        }
    }
}

proptest! {
    #![proptest_config(cases(96))]

    #[test]
    fn every_key_is_routed_to_the_children_that_may_hold_it(
        versions in versions(100),
        cuts in prop::collection::vec(any::<bool>(), 1..20),
    ) {
        let children = Children::cut(&versions, &cuts);
        let (page, pointer_to, count) = children.build();
        check_node(&page, STORE, &pointer_to, 1).unwrap();
        let node = IndexNode::open(&page).unwrap();
        prop_assert_eq!((node.len(), node.level()), (count, 1));
        prop_assert_eq!(node.used_bytes(), children.room_bytes(count));
        for index in 0..count {
            prop_assert_eq!(node.child(index).unwrap(), pointer(index as u64));
            if index > 0 {
                prop_assert_eq!(&node.pivot(index).unwrap(), &children.pivots[index]);
            }
        }
        prop_assert!(node.child(count).is_err() && node.pivot(count).is_err() && node.pivot(0).is_err());
        for key in probes(&versions) {
            children.check_route(&node, &key);
        }
    }
}

#[test]
fn equal_pivots_route_by_whether_they_are_exact() {
    let (page, _) = samples::index();
    let node = IndexNode::open(&page).unwrap();
    let route = |key: &[u8]| node.route(key).unwrap();
    assert_eq!(route(b"user0"), Route::Child(0));
    assert_eq!(route(b"user1"), Route::Ambiguous { first: 1, end: 4 });
    assert_eq!(route(b"user1\0"), Route::Child(4));
    assert_eq!(
        route(b"user10000000001"),
        Route::Ambiguous { first: 5, end: 7 }
    );
    let long = [&b"user2"[..], &[9; 1019]].concat();
    assert_eq!(route(&long), Route::Ambiguous { first: 6, end: 8 });
    assert_eq!(
        route(&[&long[..], b"more"].concat()),
        Route::Ambiguous { first: 6, end: 8 }
    );
    assert_eq!(route(&long[..1023]), Route::Child(6));
    assert_eq!(route(b"user3"), Route::Child(8));
    assert_eq!(route(b"zzz"), Route::Child(8));
}

#[test]
fn builder_refuses_what_is_out_of_order_or_range() {
    let pivot = |bytes: &[u8], ambiguous| Pivot {
        bytes: bytes.to_vec(),
        ambiguous,
    };
    let mut builder = IndexBuilder::new();
    let mut page = [0; PAGE_BYTES];
    assert!(builder.finish(&identity(1, 1), &mut page).is_err());
    builder
        .push(&pivot(&[1; 5000], false), pointer(0), &LeafFilter::NONE)
        .unwrap();
    builder
        .push(&pivot(b"b", false), pointer(1), &LeafFilter::NONE)
        .unwrap();
    for wrong in [
        pivot(b"a", true),
        pivot(b"b", false),
        pivot(&[b'c'; 1025], false),
    ] {
        assert!(!builder.fits(&wrong, &LeafFilter::NONE));
        let error = builder
            .push(&wrong, pointer(2), &LeafFilter::NONE)
            .unwrap_err();
        assert_eq!(
            (error.kind(), builder.len()),
            (ErrorKind::InvalidArgument, 2)
        );
    }
    builder
        .push(&pivot(b"b", true), pointer(2), &LeafFilter::NONE)
        .unwrap();
    assert!(builder.finish(&identity(1, 0), &mut page).is_err());
    assert_eq!(builder.len(), 3);
    assert!(builder.finish(&identity(1, 255), &mut page).is_ok());
}

#[test]
fn node_of_one_child_routes_everything_there() {
    let mut builder = IndexBuilder::new();
    builder
        .push(&Pivot::default(), pointer(3), &LeafFilter::NONE)
        .unwrap();
    let mut page = [0; PAGE_BYTES];
    let to_node = builder.finish(&identity(1, 2), &mut page).unwrap();
    check_node(&page, STORE, &to_node, 2).unwrap();
    let node = IndexNode::open(&page).unwrap();
    assert_eq!((node.len(), node.child(0).unwrap()), (1, pointer(3)));
    assert_eq!(node.route(b"").unwrap(), Route::Child(0));
    assert_eq!(node.route(&[0xff; 3000]).unwrap(), Route::Child(0));
}
