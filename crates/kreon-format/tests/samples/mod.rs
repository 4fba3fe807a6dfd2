//! One instance of every structure, with all its parts in use.
#![allow(dead_code, missing_docs)]

use kreon_base::{
    Attributes, Epoch, Incarnation, LogId, LogOffset, Lsn, PAGE_BYTES, PageBytes, PageNo, Payload,
    RegionId, RegionOptions, SegmentId,
};
use kreon_format::*;
use proptest::test_runner::{Config, RngSeed};

/// The same cases in every run.
pub fn cases(cases: u32) -> Config {
    Config {
        cases,
        rng_seed: RngSeed::Fixed(0x006b_7265_6f6e),
        failure_persistence: None,
        ..Config::default()
    }
}

pub const STORE: StoreId = StoreId(0x0123_4567_89ab_cdef);

pub const SEAL: FragmentSeal = FragmentSeal {
    store: STORE,
    sequence: 12,
};

pub const RECORD_OFFSET: LogOffset = LogOffset(0x60_1008);

pub fn pointer(n: u64) -> PagePointer {
    PagePointer {
        page: PageNo(0x1000 + n),
        epoch: Epoch(7 + n),
        checksum: 0xc0de_0000 + n as u32,
    }
}

pub fn identity(page: u64, level: u8) -> NodeIdentity {
    NodeIdentity {
        store: STORE,
        page: PageNo(page),
        epoch: Epoch(9),
        region: RegionId(3),
        level,
    }
}

pub fn logged(offset: u64, value_bytes: u32) -> Payload<'static> {
    Payload::Logged {
        offset: LogOffset(offset),
        value_bytes,
        attributes: Attributes::NONE,
    }
}

pub fn superblock() -> Superblock {
    Superblock {
        store: STORE,
        epoch: Epoch(0x1122),
        incarnation: Incarnation(5),
        segments: 440,
        catalogue: pointer(1),
        catalogue_bytes: 4321,
    }
}

pub fn bitmap() -> BitmapBlock {
    let mut block = BitmapBlock::new(3, Epoch(0x55));
    block.segments[0] = SegmentRecord {
        kind: SegmentKind::Tree,
        pages: [!0, 1, 2, 3, 4, 5, 6, 1 << 63],
        ..SegmentRecord::default()
    };
    block.segments[43] = SegmentRecord {
        kind: SegmentKind::Log,
        log: LogId(2),
        sequence: 99,
        live_bytes: 1_000_000,
        pages: [!0; 8],
    };
    block
}

pub fn catalogue() -> Catalogue {
    let tree = TreeRecord {
        root: Some(pointer(2)),
        height: 3,
        entries: 1_000_000,
        leaf_pages: 7000,
        index_pages: 50,
    };
    Catalogue {
        next_region: RegionId(9),
        regions: vec![
            RegionRecord {
                id: RegionId(1),
                name: "cities".into(),
                options: RegionOptions::DEFAULT,
                log: LogId(0),
                levels: vec![tree, TreeRecord::default()],
            },
            RegionRecord {
                id: RegionId(8),
                name: String::new(),
                options: RegionOptions::DEFAULT,
                log: LogId(0),
                levels: vec![],
            },
        ],
        region_pages: vec![pointer(3)],
        logs: vec![
            LogRecord {
                id: LogId(0),
                marker: Lsn(100),
                incarnation: Incarnation(4),
                resumes: vec![LogResume {
                    end: Lsn(104),
                    resume: Lsn(4096),
                    incarnation: Incarnation(5),
                }],
                followed_from: None,
                durable: Lsn(5000),
                open: Some(OpenSegment {
                    segment: SegmentId(4),
                    sequence: 6,
                }),
                next: Some(SegmentId(5)),
                image: vec![ImagePart {
                    start: Lsn(90),
                    end: Lsn(4200),
                    needed: Lsn(4300),
                    trees: vec![(RegionId(1), tree)],
                    pages: vec![PageRun {
                        first: PageNo(900),
                        count: 7050,
                    }],
                }],
            },
            LogRecord {
                id: LogId(1),
                marker: Lsn(0),
                incarnation: Incarnation(0),
                resumes: vec![],
                followed_from: None,
                durable: Lsn(0),
                open: None,
                next: None,
                image: vec![],
            },
        ],
        groups: vec![
            GroupPointer {
                copy: 1,
                epoch: Epoch(3),
                checksum: 0xaabb_ccdd,
            };
            2
        ],
    }
}

pub fn segment_header() -> LogSegmentHeader {
    LogSegmentHeader {
        store: STORE,
        log: LogId(1),
        segment: SegmentId(3),
        sequence: 12,
        incarnation: Incarnation(5),
        previous: Some(SegmentId(2)),
        next: Some(SegmentId(7)),
        durable: Lsn(777),
    }
}

pub fn fragment_header() -> FragmentHeader {
    FragmentHeader {
        length_bytes: 13,
        region: RegionId(3),
        key_bytes: 5,
        kind: RecordKind::Put,
        starts_record: true,
        ends_record: true,
        ends_unit: true,
        incarnation: 0xabcd,
        has_attributes: false,
    }
}

pub fn fragment() -> Vec<u8> {
    let (key, value) = (b"abcde", b"12345678");
    let header = fragment_header().encode(&SEAL, RECORD_OFFSET, &[key, value]);
    [&header[..], key, value, &[0; 3]].concat()
}

pub fn pad(bytes: usize) -> Vec<u8> {
    let mut pad = vec![0xee; bytes];
    encode_pad(&mut pad, &SEAL, RECORD_OFFSET, 0xabcd, Lsn(0x1234)).unwrap();
    pad
}

/// A leaf with every sort of entry, among them runs of equal heads, versions and long keys.
pub fn leaf() -> (PageBytes, PagePointer) {
    let mut builder = LeafBuilder::new();
    let long = [&b"user1"[..], &[b'z'; 2000]].concat();
    let mut push = |key: &[u8], lsn, payload| builder.push(key, Lsn(lsn), payload).unwrap();
    push(b"user1", 0, logged(4096, 0));
    push(b"user1\0", 0, logged(4096, 255));
    push(b"user100000000", 90, logged(1 << 40, 256));
    push(
        b"user100000000",
        80,
        Payload::Tombstone {
            offset: LogOffset(8),
        },
    );
    push(
        b"user100000000",
        0,
        Payload::Inline {
            value: b"old",
            attributes: Attributes::NONE,
        },
    );
    push(
        b"user1000000001",
        0,
        Payload::Inline {
            value: b"",
            attributes: Attributes::NONE,
        },
    );
    push(
        b"user10000000011",
        5,
        Payload::Inline {
            value: &[7; 256],
            attributes: Attributes::NONE,
        },
    );
    push(b"user2", 5, logged(77, 1 << 30));
    push(
        &[&b"user3"[..], &[b'y'; 300]].concat(),
        0,
        logged(88, 70_000),
    );
    let long = [&b"user4"[..], &long].concat();
    push(&long[..1024], 0, logged(96, 10));
    push(&long, 9, logged(104, 10));
    push(
        &long,
        0,
        Payload::Tombstone {
            offset: LogOffset(112),
        },
    );
    let mut page = [0; PAGE_BYTES];
    let pointer = builder.finish(&identity(0x2000, 0), &mut page).unwrap();
    (page, pointer)
}

/// An index node with exact and ambiguous pivots, some of equal bytes.
pub fn index() -> (PageBytes, PagePointer) {
    let mut builder = IndexBuilder::new();
    let pivot = |bytes: &[u8], ambiguous| Pivot {
        bytes: bytes.to_vec(),
        ambiguous,
    };
    let pivots = [
        pivot(b"ignored", false),
        pivot(b"user1", false),
        pivot(b"user1", true),
        pivot(b"user1", true),
        pivot(b"user1\0", false),
        pivot(b"user1000000000", false),
        pivot(b"user10000000001", true),
        pivot(&[&b"user2"[..], &[9; 1019]].concat(), true),
        pivot(b"user3", false),
    ];
    for (n, pivot) in (0..).zip(&pivots) {
        builder.push(pivot, pointer(n), &LeafFilter::NONE).unwrap();
    }
    let mut page = [0; PAGE_BYTES];
    let pointer = builder.finish(&identity(0x2001, 1), &mut page).unwrap();
    (page, pointer)
}
