//! What `verify` finds in trees that are wrong though every page is whole.

use kreon_base::{Attributes, Epoch, LogOffset, Lsn, PAGE_BYTES, PageNo, Payload, RegionId};
use kreon_format::{
    IndexBuilder, LeafBuilder, LeafFilter, NodeIdentity, PagePointer, Pivot, TreeRecord,
};

use super::memory::{Memory, REGION, STORE};
use super::model::Reached;
use crate::tree::Entry;
use crate::tree::verify::{Findings, Visitor, verify};

fn identity(page: u64, region: RegionId, level: u8) -> NodeIdentity {
    NodeIdentity {
        store: STORE,
        page: PageNo(page),
        epoch: Epoch(1),
        region,
        level,
    }
}

fn leaf_of(memory: &Memory, page: u64, keys: &[&[u8]], region: RegionId) -> PagePointer {
    let mut builder = LeafBuilder::new();
    for key in keys {
        let payload = Payload::Inline {
            value: b"v",
            attributes: Attributes::NONE,
        };
        builder.push(key, Lsn(0), payload).unwrap();
    }
    let mut bytes = [0; PAGE_BYTES];
    let pointer = builder
        .finish(&identity(page, region, 0), &mut bytes)
        .unwrap();
    memory.overwrite(PageNo(page), &bytes);
    pointer
}

/// A tree of two leaves.
fn tree(memory: &Memory, left: &[&[u8]], pivot: Pivot, right: &[&[u8]]) -> TreeRecord {
    let children = [
        leaf_of(memory, 1, left, REGION),
        leaf_of(memory, 2, right, REGION),
    ];
    let mut builder = IndexBuilder::new();
    builder
        .push(&Pivot::default(), children[0], &LeafFilter::NONE)
        .unwrap();
    builder
        .push(&pivot, children[1], &LeafFilter::NONE)
        .unwrap();
    let mut bytes = [0; PAGE_BYTES];
    let root = builder.finish(&identity(3, REGION, 1), &mut bytes).unwrap();
    memory.overwrite(PageNo(3), &bytes);
    TreeRecord {
        root: Some(root),
        height: 2,
        entries: (left.len() + right.len()) as u64,
        leaf_pages: 2,
        index_pages: 1,
    }
}

fn exact(bytes: &[u8]) -> Pivot {
    Pivot {
        bytes: bytes.to_vec(),
        ambiguous: false,
    }
}

fn findings(memory: &Memory, tree: &TreeRecord) -> Findings {
    verify(memory, tree, REGION, &mut Reached::default())
}

#[test]
fn a_sound_tree_has_no_problems() {
    let memory = Memory::default();
    let tree = tree(&memory, &[b"a", b"b"], exact(b"c"), &[b"c", b"d"]);
    let found = findings(&memory, &tree);
    assert_eq!(found.problems, Vec::<String>::new());
    assert_eq!(
        (found.entries, found.leaf_pages, found.index_pages),
        (4, 2, 1)
    );
}

#[test]
fn a_key_on_the_wrong_side_of_a_pivot_is_found() {
    let memory = Memory::default();
    for (left, pivot, right) in [
        (&[&b"a"[..], b"c"], exact(b"c"), &[&b"d"[..]]),
        (&[&b"a"[..], b"b"], exact(b"dd"), &[&b"d"[..]]),
        (
            &[&b"a"[..], b"b"],
            Pivot {
                ambiguous: true,
                ..exact(b"c")
            },
            &[&b"d"[..]],
        ),
    ] {
        let tree = tree(&memory, left, pivot, right);
        assert_eq!(findings(&memory, &tree).problems.len(), 1);
    }
}

#[test]
fn leaves_out_of_order_are_found() {
    let memory = Memory::default();
    let tree = tree(&memory, &[b"a", b"x"], exact(b"y"), &[b"b"]);
    let found = findings(&memory, &tree);
    assert!(
        found
            .problems
            .iter()
            .any(|what| what.contains("out of order"))
    );
}

#[test]
fn counts_that_the_record_has_wrong_are_found() {
    let memory = Memory::default();
    let sound = tree(&memory, &[b"a"], exact(b"b"), &[b"b"]);
    for wrong in [
        TreeRecord {
            entries: 3,
            ..sound
        },
        TreeRecord {
            leaf_pages: 1,
            ..sound
        },
        TreeRecord {
            index_pages: 2,
            ..sound
        },
    ] {
        assert_eq!(findings(&memory, &wrong).problems.len(), 1);
    }
}

#[test]
fn a_wrong_height_is_found() {
    let memory = Memory::default();
    let sound = tree(&memory, &[b"a"], exact(b"b"), &[b"b"]);
    for height in [0, 1, 3] {
        let wrong = TreeRecord { height, ..sound };
        assert!(!findings(&memory, &wrong).problems.is_empty());
    }
}

#[test]
fn a_leaf_of_another_region_is_found() {
    let memory = Memory::default();
    let root = leaf_of(&memory, 1, &[b"a"], RegionId(77));
    let tree = TreeRecord {
        root: Some(root),
        height: 1,
        entries: 1,
        leaf_pages: 1,
        index_pages: 0,
    };
    let found = findings(&memory, &tree);
    assert_eq!(found.problems.len(), 1);
    assert!(found.problems[0].contains("region 77"));
}

#[test]
fn the_walk_goes_on_behind_a_damaged_leaf() {
    let memory = Memory::default();
    let tree = tree(&memory, &[b"a"], exact(b"b"), &[b"b", b"c"]);
    memory.overwrite(PageNo(1), &[7; PAGE_BYTES]);
    let found = findings(&memory, &tree);
    assert_eq!(found.problems.len(), 1);
    assert_eq!(found.entries, 2);
}

#[test]
fn a_long_key_whose_record_is_gone_is_found_and_the_others_are_seen() {
    let memory = Memory::default();
    let (gone, there) = ([b'a'; 2000], [b'b'; 2000]);
    let mut builder = LeafBuilder::new();
    for (key, offset) in [
        (&gone, LogOffset(1 << 40)),
        (&there, memory.log_record(&there)),
    ] {
        let value_bytes = 1;
        let payload = Payload::Logged {
            offset,
            value_bytes,
            attributes: Attributes::NONE,
        };
        builder.push(key, Lsn(0), payload).unwrap();
    }
    let mut bytes = [0; PAGE_BYTES];
    let root = builder.finish(&identity(1, REGION, 0), &mut bytes).unwrap();
    memory.overwrite(PageNo(1), &bytes);
    let tree = TreeRecord {
        root: Some(root),
        height: 1,
        entries: 1,
        leaf_pages: 1,
        index_pages: 0,
    };
    let found = findings(&memory, &tree);
    assert_eq!((found.entries, found.problems.len()), (1, 1));
    assert!(found.problems[0].contains("no record at"), "{found:?}");
}

/// Looks into every page, however often it is reached.
struct Everything;

impl Visitor for Everything {
    fn page(&mut self, _pointer: &PagePointer, _level: u8) -> bool {
        true
    }

    fn entry(&mut self, _entry: Entry<'_>) {}
}

#[test]
fn the_first_thousand_problems_are_told_and_the_others_counted() {
    const CHILDREN: u8 = 60;
    let memory = Memory::default();
    let mut child = leaf_of(&memory, 1, &[b"a"], REGION);
    // Two levels of index nodes, whose children are all the same: one leaf, 3600 times.
    for level in [1, 2] {
        let mut builder = IndexBuilder::new();
        for at in 0..CHILDREN {
            let pivot = if at == 0 {
                Pivot::default()
            } else {
                exact(&[at])
            };
            builder.push(&pivot, child, &LeafFilter::NONE).unwrap();
        }
        let page = u64::from(level) + 1;
        let mut bytes = [0; PAGE_BYTES];
        let identity = identity(page, REGION, level);
        child = builder.finish(&identity, &mut bytes).unwrap();
        memory.overwrite(PageNo(page), &bytes);
    }
    let tree = TreeRecord {
        root: Some(child),
        height: 3,
        entries: 3600,
        leaf_pages: 3600,
        index_pages: 61,
    };
    let found = verify(&memory, &tree, REGION, &mut Everything);
    assert_eq!(found.problems.len(), 1000);
    // Each leaf but the first is out of order.
    assert!(found.problems.len() as u64 + found.more_problems >= 3599);
}
