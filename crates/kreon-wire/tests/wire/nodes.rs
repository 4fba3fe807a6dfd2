//! The nodes of the coordinator.

use kreon_wire::limits::MEMBERS_MAX;
use kreon_wire::*;

use crate::samples::{config, member, range};

fn server() -> ServerNode {
    ServerNode {
        server: ServerId(3),
        peer_address: "10.0.0.3:7000".to_owned(),
        client_address: "10.0.0.3:7001".to_owned(),
        domain: "rack 3".to_owned(),
    }
}

fn table() -> TableNode {
    TableNode {
        table: "cities".to_owned(),
        creating: true,
        ranges: vec![(Vec::new(), GroupId(1)), (b"m".to_vec(), GroupId(2))],
    }
}

/// All nodes: their bytes, and what decodes and encodes them again.
type Again = fn(&[u8]) -> Result<Vec<u8>, Violation>;

fn all() -> [(Vec<u8>, Again); 5] {
    [
        (config().encode(), |bytes| {
            GroupConfig::decode(bytes).map(|node| node.encode())
        }),
        (server().encode(), |bytes| {
            ServerNode::decode(bytes).map(|node| node.encode())
        }),
        (table().encode(), |bytes| {
            TableNode::decode(bytes).map(|node| node.encode())
        }),
        (FormatNode { version: 1 }.encode(), |bytes| {
            FormatNode::decode(bytes).map(|node| node.encode())
        }),
        (LimitsNode { primaries_max: 8 }.encode(), |bytes| {
            LimitsNode::decode(bytes).map(|node| node.encode())
        }),
    ]
}

#[test]
fn nodes_read_back_and_only_as_themselves() {
    assert_eq!(GroupConfig::decode(&config().encode()), Ok(config()));
    let ranges = KeyRange::encode_all(&config().ranges);
    assert_eq!(KeyRange::decode_all(&ranges), Ok(config().ranges));
    assert!(KeyRange::decode_all(&ranges[..ranges.len() - 1]).is_err());
    assert_eq!(ServerNode::decode(&server().encode()), Ok(server()));
    assert_eq!(TableNode::decode(&table().encode()), Ok(table()));
    for (index, (bytes, _)) in all().iter().enumerate() {
        for (other, (_, again)) in all().iter().enumerate() {
            let expected = if index == other {
                Ok(bytes.clone())
            } else {
                Err(Violation::Magic)
            };
            assert_eq!(again(bytes), expected, "{index} as {other}");
        }
    }
}

#[test]
fn no_changed_byte_of_a_node_is_accepted() {
    for (whole, again) in all() {
        for at in 0..whole.len() {
            for change in 1..=255 {
                let mut bytes = whole.clone();
                bytes[at] ^= change;
                assert!(again(&bytes).is_err(), "byte {at} ^ {change}");
            }
            assert!(again(&whole[..at]).is_err(), "{at} bytes");
        }
    }
}

/// With a right checksum, too, a node has one encoding.
#[test]
fn a_changed_node_with_a_right_checksum_is_refused_or_has_one_encoding() {
    let mut accepted = 0;
    for (whole, again) in all() {
        for at in (0..whole.len()).filter(|at| !(8..12).contains(at)) {
            for change in 1..=255 {
                let mut bytes = whole.clone();
                bytes[at] ^= change;
                bytes[8..12].fill(0);
                let checksum = kreon_base::Checksum::of(&bytes);
                bytes[8..12].copy_from_slice(&checksum.to_le_bytes());
                if let Ok(encoded) = again(&bytes) {
                    assert_eq!(encoded, bytes);
                    accepted += 1;
                }
            }
        }
    }
    assert!(accepted > 1000, "only {accepted} were accepted");
}

#[test]
fn a_configuration_that_contradicts_itself_is_refused() {
    type Change = fn(&mut GroupConfig);
    let wrong: [(Change, Violation); 18] = [
        (|c| c.group = GroupId(0), Violation::FieldValue),
        (|c| c.term = Term::MAX.next(), Violation::FieldValue),
        (|c| c.min_in_sync = 0, Violation::FieldValue),
        (|c| c.min_in_sync = 17, Violation::FieldValue),
        (|c| c.members[0] = ServerId(0), Violation::FieldValue),
        (|c| c.members.swap(0, 1), Violation::Order),
        (|c| c.members[1] = c.members[0], Violation::Order),
        (|c| c.in_sync.swap(0, 1), Violation::Order),
        (|c| c.in_sync[1] = c.in_sync[0], Violation::Order),
        (|c| c.in_sync[1] = member(4), Violation::Order),
        (|c| c.primary = Some(member(2)), Violation::Order),
        (|c| c.ranges.swap(0, 1), Violation::Order),
        (|c| c.ranges[0].end = Some(b"tz".to_vec()), Violation::Order),
        (|c| c.ranges[0].end = Some(Vec::new()), Violation::Order),
        (|c| c.ranges[1].end = None, Violation::Order),
        (|c| c.ranges[2].table.clear(), Violation::FieldValue),
        (|c| c.ranges[0].table.push('\n'), Violation::FieldValue),
        (
            |c| c.ranges[0].end = Some(vec![b'n'; 257]),
            Violation::Count,
        ),
    ];
    for (index, (change, violation)) in wrong.into_iter().enumerate() {
        let mut changed = config();
        change(&mut changed);
        // The second range is the last of its table: without an end it is right, unless another follows.
        if changed == config() {
            changed.ranges.insert(2, range("cities", b"u", None));
        }
        let read = GroupConfig::decode(&changed.encode());
        assert_eq!(read, Err(violation), "{index}");
        assert_eq!(changed.check(), Err(violation), "{index}");
    }
}

/// Its flag says whether a range has an end: an end that nobody reads would be a second encoding.
#[test]
fn a_range_without_end_carries_none() {
    let mut bounded = config();
    bounded.ranges = vec![range("t", b"a", Some(b"z"))];
    let mut bytes = bounded.encode();
    // Flag, three lengths, and one byte each of table, start and end.
    let flag_at = bytes.len() - 10;
    assert_eq!(bytes[flag_at], 1);
    bytes[flag_at] = 0;
    bytes[8..12].fill(0);
    let checksum = kreon_base::Checksum::of(&bytes);
    bytes[8..12].copy_from_slice(&checksum.to_le_bytes());
    assert_eq!(GroupConfig::decode(&bytes), Err(Violation::FieldValue));
}

#[test]
fn a_primary_that_restarted_is_not_the_one_in_the_set() {
    let mut changed = config();
    let mut restarted = member(3);
    restarted.process = ProcessId([0xee; 16]);
    changed.primary = Some(restarted);
    assert_eq!(changed.check(), Err(Violation::Order));
    assert!(!config().is_in_sync(&restarted));
    assert!(config().is_in_sync(&member(3)));
}

#[test]
fn counts_beyond_what_follows_take_no_memory() {
    let mut bytes = config().encode();
    bytes[32..36].copy_from_slice(&u32::MAX.to_le_bytes());
    bytes[8..12].fill(0);
    let checksum = kreon_base::Checksum::of(&bytes);
    bytes[8..12].copy_from_slice(&checksum.to_le_bytes());
    assert_eq!(GroupConfig::decode(&bytes), Err(Violation::Count));

    let mut many = config();
    many.members = (1..=MEMBERS_MAX as u32 + 1).map(ServerId).collect();
    assert_eq!(GroupConfig::decode(&many.encode()), Err(Violation::Count));
    many.members.clear();
    assert_eq!(many.check(), Err(Violation::Count));
}

#[test]
fn a_configuration_longer_than_a_node_is_refused() {
    let mut long = config();
    let key = |number: u32| [&number.to_be_bytes()[..], &[b'k'; 252]].concat();
    let ranges = (0..2000).map(|n| range("cities", &key(n), Some(&key(n + 1))));
    long.ranges = ranges.collect();
    assert_eq!(long.check(), Err(Violation::TooLong));
    assert_eq!(GroupConfig::decode(&long.encode()), Err(Violation::TooLong));
    long.ranges.truncate(1500);
    assert_eq!(GroupConfig::decode(&long.encode()), Ok(long));
}

#[test]
fn a_key_is_found_in_its_range() {
    let config = config();
    let found = |table, key: &[u8]| config.range_of(table, key).map(|range| range.start.clone());
    assert_eq!(found("cities", b""), Some(Vec::new()));
    assert_eq!(found("cities", b"lzz"), Some(Vec::new()));
    assert_eq!(found("cities", b"m"), None);
    assert_eq!(found("cities", b"t"), Some(b"t".to_vec()));
    assert_eq!(found("cities", &[0xff; 300]), Some(b"t".to_vec()));
    assert_eq!(found("towns", b"a"), None);
}

#[test]
fn a_table_has_a_group_for_every_key() {
    let mut open = table();
    open.ranges.remove(0);
    assert_eq!(open.check(), Err(Violation::Order));
    open.ranges.clear();
    assert_eq!(TableNode::decode(&open.encode()), Err(Violation::Order));
    let mut none = table();
    none.ranges[1].1 = GroupId(0);
    assert_eq!(none.check(), Err(Violation::FieldValue));
    let mut same = table();
    same.ranges[1].0.clear();
    assert_eq!(same.check(), Err(Violation::Order));
}

#[test]
fn a_server_says_where_it_is() {
    let mut node = server();
    node.client_address.clear();
    assert_eq!(node.check(), Err(Violation::FieldValue));
    node.client_address = "a".repeat(256);
    assert_eq!(ServerNode::decode(&node.encode()), Err(Violation::Count));
}
