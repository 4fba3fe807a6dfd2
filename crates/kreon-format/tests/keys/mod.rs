//! Keys that are hard on a node: prefixes of one another, zeroes and ones, with lengths around the limits.
#![allow(dead_code, missing_docs)]

use kreon_base::{Attributes, LogOffset, Lsn, Payload, Timestamp};
use kreon_format::{INLINE_VALUE_BYTES_MAX, LONG_KEY_STORED_BYTES};
use proptest::prelude::*;

/// A version of a key with its payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    pub key: Vec<u8>,
    pub lsn: Lsn,
    pub owned: Owned,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Owned {
    Logged(u64, u32),
    Inline(Vec<u8>),
    Tombstone(u64),
}

impl Version {
    /// What is kept beside its value, if it has one: of every third key something.
    pub fn attributes(&self) -> Attributes {
        let salt = self.key.len() as u64 + self.lsn.0;
        let expires = salt
            .is_multiple_of(3)
            .then(|| Timestamp::of_ms(1 << (salt % 48)));
        Attributes::expiring(expires)
    }

    pub fn payload(&self) -> Payload<'_> {
        let attributes = self.attributes();
        match &self.owned {
            Owned::Logged(offset, value_bytes) => Payload::Logged {
                offset: LogOffset(*offset),
                value_bytes: value_bytes + attributes.stored_bytes() as u32,
                attributes,
            },
            Owned::Inline(value) => Payload::Inline { value, attributes },
            Owned::Tombstone(offset) => Payload::Tombstone {
                offset: LogOffset(*offset),
            },
        }
    }

    pub fn stored(&self) -> &[u8] {
        stored(&self.key)
    }

    pub fn is_long(&self) -> bool {
        self.key.len() > LONG_KEY_STORED_BYTES
    }
}

pub fn stored(key: &[u8]) -> &[u8] {
    &key[..key.len().min(LONG_KEY_STORED_BYTES)]
}

/// A key of few different pieces, so that keys share much.
pub fn key() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        8 => prop::sample::select(vec![vec![0], vec![0xff], vec![b'a'], vec![b'b'], vec![0; 8], b"user".to_vec()]),
        2 => prop::sample::select(vec![7_usize, 8, 9, 247, 255, 256, 264, 1015, 1016]).prop_map(|n| vec![b'x'; n]),
        1 => prop::sample::select(vec![1023_usize, 1024, 1025, 1026]).prop_map(|n| vec![b'x'; n]),
        1 => Just(vec![b'x'; 65536]),
    ];
    prop::collection::vec(piece, 0..6).prop_map(|pieces| {
        let mut key = pieces.concat();
        key.truncate(65536);
        key
    })
}

fn owned() -> impl Strategy<Value = Owned> {
    prop_oneof![
        4 => (0_u64..1 << 48, prop::sample::select(vec![0_u32, 255, 256, 65535, 65536, 1 << 24, 1 << 30]))
            .prop_map(|(offset, bytes)| Owned::Logged(offset, bytes)),
        2 => (0..=INLINE_VALUE_BYTES_MAX, any::<u8>()).prop_map(|(n, byte)| Owned::Inline(vec![byte; n])),
        1 => (0_u64..1 << 48).prop_map(Owned::Tombstone),
    ]
}

/// Versions of keys in order, newest first, all different.
pub fn versions(count_max: usize) -> impl Strategy<Value = Vec<Version>> {
    let lsn = prop_oneof![3 => Just(0), 1 => 0_u64..4, 1 => any::<u64>()];
    let version = (key(), lsn, owned()).prop_map(|(key, lsn, owned)| Version {
        owned: match owned {
            Owned::Inline(_) if key.len() > LONG_KEY_STORED_BYTES => Owned::Tombstone(lsn >> 16),
            owned => owned,
        },
        key,
        lsn: Lsn(lsn),
    });
    prop::collection::vec(version, 1..count_max).prop_map(|mut versions| {
        versions.sort_by(|a, b| a.key.cmp(&b.key).then(b.lsn.cmp(&a.lsn)));
        versions.dedup_by(|a, b| a.key == b.key && a.lsn == b.lsn);
        versions
    })
}

/// Keys near those of `versions`, present and absent.
pub fn probes(versions: &[Version]) -> Vec<Vec<u8>> {
    let mut probes = vec![vec![], vec![0], vec![0xff; 2000]];
    for version in versions {
        let key = &version.key;
        probes.push(key.clone());
        probes.push(stored(key).to_vec());
        probes.push([key, &[0][..]].concat());
        probes.push([key, &[0xff][..]].concat());
        if let Some((last, front)) = key.split_last() {
            probes.push(front.to_vec());
            probes.push([front, &[last.wrapping_add(1)]].concat());
            probes.push([front, &[last.wrapping_sub(1)]].concat());
        }
    }
    probes.retain(|key| key.len() <= 65536);
    probes
}
