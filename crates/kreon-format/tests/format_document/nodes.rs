//! Leaves, index nodes, filters.

use kreon_base::{
    Attributes, Codec, Epoch, LogOffset, Lsn, PAGE_BYTES, PageBytes, PageNo, Payload, RegionId,
    Timestamp,
};
use kreon_format::*;

use crate::document::Document;
use crate::pages::pointer;
use crate::values::Value::{Bytes, Items, Number};
use crate::values::{STORE, distinct};

const HEAD_BYTES: usize = 8;
const PREFIX: &[u8] = b"user";

fn identity(level: u8) -> NodeIdentity {
    NodeIdentity {
        store: STORE,
        page: PageNo(distinct(6, 1)),
        epoch: Epoch(distinct(6, 2)),
        region: RegionId(distinct(4, 3) as u32),
        level,
    }
}

/// The parts of a node besides its identity.
struct Parts<'a> {
    kind: &'a str,
    count: usize,
    /// For each entry the key behind the prefix, and the entry.
    entries: Vec<(Vec<u8>, Vec<u8>)>,
    first_child: Vec<u8>,
    first_filter: Vec<u8>,
}

impl Document {
    fn node(&self, identity: &NodeIdentity, parts: Parts<'_>, page: &PageBytes) -> Vec<u8> {
        let entries: Vec<u8> = parts
            .entries
            .iter()
            .rev()
            .flat_map(|(_, entry)| entry.clone())
            .collect();
        let tail = parts.first_child.len() + parts.first_filter.len() + PREFIX.len();
        let mut place = PAGE_BYTES - tail;
        let (mut heads, mut slots) = (Vec::new(), Vec::new());
        for (key, entry) in &parts.entries {
            place -= entry.len();
            slots.push((place as u16).to_le_bytes().to_vec());
            let mut head = key.clone();
            head.resize(HEAD_BYTES, 0);
            heads.push(head);
        }
        let address = identity.page;
        let level = identity.level.into();
        let header = self.assemble(
            "Node header",
            &[
                (
                    "preamble",
                    self.preamble(parts.kind, level, page, identity.store, address),
                ),
                ("page", Number(address.0)),
                ("epoch", Number(identity.epoch.0)),
                ("region", Number(identity.region.0.into())),
                ("count", Number(parts.count as u64)),
                ("prefix length", Number(PREFIX.len() as u64)),
                ("heap start", Number(place as u64)),
                ("filter length", Number(parts.first_filter.len() as u64)),
            ],
        );
        let front = header.len() + heads.concat().len() + slots.concat().len();
        let gap = vec![0; place - front];
        self.assemble(
            "Node",
            &[
                ("header", Bytes(header)),
                ("heads", Items(heads)),
                ("slots", Items(slots)),
                ("zero", Bytes(gap)),
                ("entries", Bytes(entries)),
                ("first child", Bytes(parts.first_child)),
                ("first filter", Bytes(parts.first_filter)),
                ("prefix", Bytes(PREFIX.to_vec())),
            ],
        )
    }

    /// An entry of a key with `key` behind the prefix.
    fn entry(&self, tag: u64, key: &[u8], body: Vec<u8>) -> Vec<u8> {
        let width = if key.len() > usize::from(u8::MAX) {
            2
        } else {
            1
        };
        let length = (key.len() as u16).to_le_bytes()[..width].to_vec();
        let rest = key.get(HEAD_BYTES..).unwrap_or_default().to_vec();
        self.assemble(
            "Entry",
            &[
                ("tag", Number(tag)),
                ("key length", Bytes(length)),
                ("key rest", Bytes(rest)),
                ("body", Bytes(body)),
            ],
        )
    }

    fn leaf_entry(&self, key: &[u8], lsn: Lsn, payload: Payload<'_>) -> Vec<u8> {
        let whole = PREFIX.len() + key.len();
        let is_long = whole > LONG_KEY_STORED_BYTES;
        let stored = &key[..key.len().min(LONG_KEY_STORED_BYTES - PREFIX.len())];
        let (kind, offset, value_bytes, value) = match payload {
            Payload::Logged {
                offset,
                value_bytes,
                ..
            } => ("logged", Some(offset), Some(value_bytes), &[][..]),
            Payload::Inline { value, .. } => ("inline", None, Some(value.len() as u32), value),
            Payload::Tombstone { offset } => ("tombstone", Some(offset), None, &[][..]),
            Payload::Erased { key_at } => ("erased", is_long.then_some(key_at), None, &[][..]),
        };
        let bytes = |value: u64, width: usize| value.to_le_bytes()[..width].to_vec();
        let width = value_bytes.map_or(0, width_of);
        let fields = [
            ("kind", self.code("Kinds of leaf entries", kind)),
            ("has LSN", u64::from(lsn != Lsn(0))),
            ("long key", is_long.into()),
            ("value width", width.saturating_sub(1) as u64),
            ("has attributes", u64::from(!payload.attributes().is_none())),
            ("wide", u64::from(stored.len() > usize::from(u8::MAX))),
        ];
        let body = self.assemble(
            "Body of a leaf entry",
            &[
                (
                    "LSN",
                    Bytes(bytes(lsn.0, if lsn == Lsn(0) { 0 } else { 8 })),
                ),
                (
                    "log offset",
                    Bytes(offset.map_or_else(Vec::new, |offset| bytes(offset.0, 6))),
                ),
                (
                    "value length",
                    Bytes(bytes(value_bytes.unwrap_or(0).into(), width)),
                ),
                (
                    "whole key length",
                    Bytes(bytes(whole as u64, if is_long { 3 } else { 0 })),
                ),
                ("attributes", Bytes(self.attributes(payload.attributes()))),
                ("value", Bytes(value.to_vec())),
            ],
        );
        self.entry(self.pack("Tag of a leaf entry", &fields), stored, body)
    }

    /// Attributes of a value; no bytes if there are none.
    pub fn attributes(&self, attributes: Attributes) -> Vec<u8> {
        if attributes.is_none() {
            return Vec::new();
        }
        let expiry = attributes.expires().map_or(0, Timestamp::ms);
        let codec = attributes.codec().code();
        let fields = [("expiry", Number(expiry)), ("codec", Number(codec.into()))];
        self.assemble("Attributes", &fields)
    }

    fn filter(&self, prefix: usize, probes: u64, words: Vec<Vec<u8>>) -> Vec<u8> {
        let front = [("prefix length", prefix as u64), ("probes", probes - 1)];
        self.assemble(
            "Filter",
            &[
                ("front word", Number(self.pack("Front word", &front))),
                ("words", Number(words.len() as u64)),
                ("bits", Items(words)),
            ],
        )
    }

    /// The hash of a stored key behind the prefix, according to the text on filters.
    fn hash(&self, key: &[u8]) -> u64 {
        let numbers = self.numbers("Numbers of a filter", "name", "value");
        let fold = |state: u64, factor: &str| {
            let product = u128::from(state) * u128::from(numbers[factor]);
            product as u64 ^ (product >> 64) as u64
        };
        let (word_bytes, short) = (
            numbers["word bytes"] as usize,
            numbers["short piece"] as usize,
        );
        let little = |bytes: &[u8]| {
            bytes
                .iter()
                .rev()
                .fold(0u64, |number, byte| number << 8 | u64::from(*byte))
        };
        let mut head = key[..key.len().min(HEAD_BYTES)].to_vec();
        head.resize(HEAD_BYTES, 0);
        let mut words = vec![little(&head)];
        for piece in key.get(HEAD_BYTES..).unwrap_or_default().chunks(word_bytes) {
            let length = piece.len();
            words.push(match length {
                _ if length == word_bytes => little(piece),
                _ if length >= short => {
                    little(&[&piece[..short], &piece[length - short..]].concat())
                }
                _ => [piece[0], piece[length / 2], piece[length - 1]]
                    .iter()
                    .fold(0, |number, byte| number << 8 | u64::from(*byte)),
            });
        }
        let start = numbers["seed"] ^ key.len() as u64;
        let state = words
            .iter()
            .fold(start, |state, word| fold(state ^ word, "multiplier"));
        fold(state, "last multiplier")
    }
}

/// Bytes of the shortest integer that holds `value`, at least one.
fn width_of(value: u32) -> usize {
    let fits = |width: &usize| u64::from(value) < 1 << (8 * width);
    (1..4).find(fits).unwrap_or(4)
}

/// Attributes with bytes that all differ.
pub fn expiring() -> Attributes {
    Attributes::expiring(Some(Timestamp::of_ms(distinct(6, 9)))).with_codec(Codec::Lz4)
}

fn wide_key() -> Vec<u8> {
    [&b"f"[..], &[b'w'; 300]].concat()
}

fn long_key(last: u8) -> Vec<u8> {
    [&[last][..], &[b'z'; 0x01_0000 - 9]].concat()
}

#[test]
fn a_leaf_is_as_the_document_draws_it() {
    let document = Document::read();
    let offset = LogOffset(distinct(6, 4));
    let logged = |value_bytes| Payload::Logged {
        offset,
        value_bytes,
        attributes: Attributes::NONE,
    };
    let entries: Vec<(Vec<u8>, u64, Payload<'_>)> = vec![
        (b"a".to_vec(), 0, logged(0xf1)),
        (b"bbbbbbbb".to_vec(), 0, logged(0xf2f1)),
        (b"cccccccccc".to_vec(), distinct(8, 5), logged(0xf3_f2f1)),
        (
            b"d".to_vec(),
            distinct(8, 6),
            Payload::Inline {
                value: &[7; 256],
                attributes: Attributes::NONE,
            },
        ),
        (
            b"d".to_vec(),
            0,
            Payload::Inline {
                value: b"",
                attributes: Attributes::NONE,
            },
        ),
        (b"e".to_vec(), distinct(8, 7), Payload::Tombstone { offset }),
        (
            b"ee".to_vec(),
            distinct(8, 7),
            Payload::Erased {
                key_at: LogOffset(0),
            },
        ),
        (
            b"eee".to_vec(),
            0,
            Payload::Logged {
                offset,
                value_bytes: 8,
                attributes: expiring(),
            },
        ),
        (
            b"eeee".to_vec(),
            distinct(8, 8),
            Payload::Inline {
                value: b"value",
                attributes: expiring(),
            },
        ),
        (wide_key(), 0, logged(1 << 30)),
        (long_key(b'g'), 0, logged(0)),
        (long_key(b'h'), 0, Payload::Erased { key_at: offset }),
    ];
    assert_eq!(document.at("Kinds of leaf entries").rows.len(), 4);
    let mut builder = LeafBuilder::new();
    let mut told = Vec::new();
    for (key, lsn, payload) in &entries {
        builder
            .push(&[PREFIX, key].concat(), Lsn(*lsn), *payload)
            .unwrap();
        told.push((key.clone(), document.leaf_entry(key, Lsn(*lsn), *payload)));
        let (key, _) = told.last_mut().unwrap();
        key.truncate(HEAD_BYTES);
    }
    let mut page = [0; PAGE_BYTES];
    builder.finish(&identity(0), &mut page).unwrap();
    let parts = Parts {
        kind: "node",
        count: told.len(),
        entries: told,
        first_child: Vec::new(),
        first_filter: Vec::new(),
    };
    assert_eq!(page[..], document.node(&identity(0), parts, &page));
}

/// A leaf of many keys, and its filter with `bits_per_key`.
fn filtered(bits_per_key: usize) -> (Vec<Vec<u8>>, LeafFilter) {
    let mut builder = LeafBuilder::new();
    let mut keys = Vec::new();
    for number in 0..200_u32 {
        let key = [
            &number.to_be_bytes()[2..],
            &vec![b'k'; number as usize % 23],
        ]
        .concat();
        let erased = Payload::Erased {
            key_at: LogOffset(0),
        };
        if builder
            .push(&[PREFIX, &key].concat(), Lsn(0), erased)
            .is_ok()
        {
            keys.push(key);
        }
    }
    let mut page = [0; PAGE_BYTES];
    builder.finish(&identity(0), &mut page).unwrap();
    let leaf = Leaf::open(&page).unwrap();
    let filter = FilterBuilder::new().build(&leaf, bits_per_key).unwrap();
    // The keys behind their common prefix.
    let common = leaf.prefix().len() - PREFIX.len();
    (
        keys.into_iter().map(|key| key[common..].to_vec()).collect(),
        filter,
    )
}

#[test]
fn a_filter_is_as_the_document_says_to_the_bit() {
    let document = Document::read();
    let words_max = document.numbers("Numbers of a filter", "name", "value")["words max"];
    for bits_per_key in [1, 10, FILTER_BITS_PER_KEY_MAX] {
        let (keys, filter) = filtered(bits_per_key);
        let bytes = filter.as_bytes();
        let words = u64::from(bytes[2]);
        assert!(words <= words_max && (bits_per_key < 24 || words == words_max));
        let probes = (bits_per_key as u64 * 6 / 10).max(1);
        let mut bits = vec![0_u8; words as usize * 4];
        let places = bits.len() as u128 * 8;
        for key in keys {
            let mut hash = document.hash(&key);
            for _ in 0..probes {
                let product = u128::from(hash) * places;
                let place = (product >> 64) as usize;
                bits[place / 8] |= 1 << (place % 8);
                hash = product as u64;
            }
        }
        let prefix = 5;
        let told = document.filter(prefix, probes, bits.chunks(4).map(<[u8]>::to_vec).collect());
        assert_eq!(bytes, told, "{bits_per_key} bits a key");
    }
}

#[test]
fn an_index_node_is_as_the_document_draws_it_with_filters_and_without() {
    let document = Document::read();
    let (_, filter) = filtered(10);
    let none = LeafFilter::NONE;
    for (kind, filter) in [("node with filters", &filter), ("node", &none)] {
        let children = [
            (&b"ignored"[..], false, filter),
            (b"b", false, filter),
            (b"cccccccccccc", true, &none),
            (&wide_key(), false, &none),
        ];
        let mut builder = IndexBuilder::new();
        let mut told = Vec::new();
        for (salt, (key, ambiguous, filter)) in (1..).zip(children) {
            let pivot = Pivot {
                bytes: [PREFIX, key].concat(),
                ambiguous,
            };
            builder.push(&pivot, pointer(salt), filter).unwrap();
            let tag = [
                ("ambiguous", u64::from(ambiguous)),
                ("filtered", u64::from(!filter.is_none())),
                ("wide", u64::from(key.len() > usize::from(u8::MAX))),
            ];
            let body = document.assemble(
                "Body of an index entry",
                &[
                    ("child", Bytes(document.pointer(&pointer(salt)))),
                    ("filter", Bytes(filter.as_bytes().to_vec())),
                ],
            );
            let entry = document.entry(document.pack("Tag of an index entry", &tag), key, body);
            told.push((key[..key.len().min(HEAD_BYTES)].to_vec(), entry));
        }
        told.remove(0);
        let mut page = [0; PAGE_BYTES];
        builder.finish(&identity(1), &mut page).unwrap();
        let parts = Parts {
            kind,
            count: children.len(),
            entries: told,
            first_child: document.pointer(&pointer(1)),
            first_filter: filter.as_bytes().to_vec(),
        };
        assert_eq!(
            page[..],
            document.node(&identity(1), parts, &page),
            "{kind}"
        );
    }
}
