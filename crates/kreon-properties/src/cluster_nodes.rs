//! What servers read from their coordinator.

use arbitrary::{Arbitrary, Result, Unstructured};
use kreon_wire::*;

use crate::case::with;
use crate::forge::{Origin, damage, flip};
use crate::messages::any_config;
use crate::seal;

const CHECKSUM_AT: usize = 8;

/// Bytes in front of the fields of a node.
const PREAMBLE_BYTES: usize = 12;

/// A node: what decodes it, and encodes it again.
type Again = fn(&[u8]) -> Option<Vec<u8>>;

const NODES: [Again; 5] = [
    |bytes| GroupConfig::decode(bytes).ok().map(|node| node.encode()),
    |bytes| ServerNode::decode(bytes).ok().map(|node| node.encode()),
    |bytes| TableNode::decode(bytes).ok().map(|node| node.encode()),
    |bytes| FormatNode::decode(bytes).ok().map(|node| node.encode()),
    |bytes| LimitsNode::decode(bytes).ok().map(|node| node.encode()),
];

/// A node of any kind, read as each kind: at most one accepts it, and encodes it as it was.
pub fn cluster_node(bytes: &[u8]) {
    with(bytes, |u| {
        let kind = u.choose_index(NODES.len())?;
        let given = any_node(u, kind)?;
        let origin = Origin::arbitrary(u)?;
        let bytes = forge(u, origin, given)?;
        let found: Vec<_> = NODES.iter().filter_map(|again| again(&bytes)).collect();
        assert!(found.iter().all(|again| *again == bytes));
        match origin {
            Origin::Whole => assert_eq!(NODES[kind](&bytes).as_ref(), Some(&bytes)),
            Origin::Flipped => assert!(found.is_empty()),
            _ => assert!(found.len() <= 1),
        }
        Ok(())
    });
}

fn any_node(u: &mut Unstructured<'_>, kind: usize) -> Result<Vec<u8>> {
    Ok(match kind {
        0 => {
            let (group, term) = (
                GroupId(u.int_in_range(1..=99)?),
                Term(u.int_in_range(0..=99)?),
            );
            any_config(u, group, term)?.encode()
        }
        1 => {
            let node = ServerNode {
                server: ServerId(u.int_in_range(1..=u32::MAX)?),
                peer_address: format!("10.0.0.1:{}", u16::arbitrary(u)?),
                client_address: format!("[::1]:{}", u16::arbitrary(u)?),
                domain: "räck".to_owned(),
            };
            node.encode()
        }
        2 => any_table(u)?.encode(),
        3 => {
            let version = u.int_in_range(1..=u32::MAX)?;
            FormatNode { version }.encode()
        }
        _ => {
            let primaries_max = u.int_in_range(1..=u32::MAX)?;
            LimitsNode { primaries_max }.encode()
        }
    })
}

fn any_table(u: &mut Unstructured<'_>) -> Result<TableNode> {
    let mut ranges = vec![(Vec::new(), GroupId(u.int_in_range(1..=99)?))];
    for first in 0..u.int_in_range(0..=5)? {
        let start = [&[first], u.bytes(2)?].concat();
        ranges.push((start, GroupId(u.int_in_range(1..=99)?)));
    }
    Ok(TableNode {
        table: "cities".to_owned(),
        creating: u.arbitrary()?,
        ranges,
    })
}

fn forge(u: &mut Unstructured<'_>, origin: Origin, mut bytes: Vec<u8>) -> Result<Vec<u8>> {
    match origin {
        Origin::Whole => {}
        Origin::Flipped => flip(u, &mut bytes)?,
        Origin::Resealed => damage(u, &mut bytes)?,
        Origin::Sealed => {
            bytes.truncate(PREAMBLE_BYTES);
            bytes.extend_from_slice(u.bytes(u.len())?);
        }
        Origin::Raw => bytes = u.bytes(u.len())?.to_vec(),
    }
    if matches!(origin, Origin::Resealed | Origin::Sealed) {
        seal::whole(&mut bytes, CHECKSUM_AT);
    }
    Ok(bytes)
}
