//! The layouts in `docs/format-kvell.md` equal those that the encoders write.

use kreon_base::Checksum;
use kreon_format::StoreId;
use kvell::format::*;

use crate::document::{Document, number};
use crate::values::Value::{self, Bytes, Items, Number};
use crate::values::{STORE, distinct};
use crate::{noise, slot};

const SEAL: ItemSeal = ItemSeal { store: STORE };

fn read() -> Document {
    Document::read_files(&["format-kvell.md"])
}

macro_rules! by_name {
    ($($name:ident),+ $(,)?) => { [$((stringify!($name), $name as u64)),+] };
}

#[test]
fn limits_and_sizes_are_those_of_the_code() {
    let constants = by_name![
        EXTENT_BYTES,
        EXTENT_HEADER_BYTES,
        SLOTS_AT,
        SLOT_BYTES_MAX,
        ATOMIC_BYTES_MIN,
        ATOMIC_BYTES_MAX,
        OFFSET_MAX,
        ITEM_HEADER_BYTES,
        HEAD_KEY_BYTES_MAX,
        HEAD_BYTES_MAX,
        ITEM_KEY_BYTES_MAX,
        PART_PREFIX_BYTES,
        PARTS_MAX,
        PARTITIONS_MAX,
        SUPERBLOCK_SLOTS,
        INCARNATION_MAX,
        COUNTER_MAX,
        IMAGE_BLOCK_BYTES,
        IMAGE_HEADER_BYTES,
        FORMAT_VERSION,
    ];
    let document = read();
    let told = document.numbers("Limits and sizes", "name", "value");
    assert_eq!(told, constants.into());
}

#[test]
fn the_tables_of_classes_are_those_of_the_code() {
    let document = read();
    for (unit, atomic_bytes) in [("sector", 512), ("page", 4096)] {
        let section = document.at(&format!("Classes for an atomic unit of a {unit}"));
        let told: Vec<[u64; 4]> = section
            .rows
            .iter()
            .map(|row| {
                ["class", "slot bytes", "in a cell", "in an extent"].map(|name| number(&row[name]))
            })
            .collect();
        let classes = Classes::new(atomic_bytes).unwrap();
        let made: Vec<[u64; 4]> = classes
            .iter()
            .map(|(number, class)| {
                let Class {
                    slot_bytes,
                    slots_per_cell,
                    slots_per_extent,
                    ..
                } = class;
                [
                    number.0.into(),
                    slot_bytes.into(),
                    slots_per_cell.into(),
                    slots_per_extent.into(),
                ]
            })
            .collect();
        let table: String = made
            .iter()
            .map(|[class, bytes, cell, extent]| {
                format!("| {class} | {bytes} | {cell} | {extent} |\n")
            })
            .collect();
        assert_eq!(told, made, "the table should be\n{table}");
    }
}

impl Document {
    /// CRC-32C of a checksum's input.
    pub(super) fn checksum(&self, heading: &str, values: &[(&str, Value)]) -> Value {
        Number(Checksum::of(&self.assemble(heading, values)).into())
    }

    fn timestamp(&self, timestamp: Timestamp) -> u64 {
        let parts = [
            ("counter", timestamp.counter()),
            ("incarnation", timestamp.incarnation().into()),
        ];
        self.pack("Timestamp", &parts)
    }

    /// An item as the tables say.
    fn item(
        &self,
        kind: &str,
        at: Slot,
        timestamp: Timestamp,
        key: &[u8],
        value: &[u8],
    ) -> Vec<u8> {
        let (is_long, has_body) = (key.len() > HEAD_KEY_BYTES_MAX, kind != "tombstone");
        let (in_head, in_body) = key.split_at(key.len().min(HEAD_KEY_BYTES_MAX));
        let body = [in_body, value].concat();
        let place = |heading: &str, last: &str, rest: Vec<u8>, more: &[(&str, Value)]| {
            let mut values = vec![
                ("store", Number(STORE.0)),
                ("offset", Number(at.offset)),
                (last, Bytes(rest)),
            ];
            values.extend(more.iter().cloned());
            let values: Vec<_> = values
                .iter()
                .map(|(name, value)| (*name, value.clone()))
                .collect();
            self.checksum(heading, &values)
        };
        let stamp = Number(self.timestamp(timestamp));
        let body_checksum = match has_body {
            true => place(
                "Input of a body checksum",
                "body",
                body,
                &[("timestamp", stamp.clone())],
            ),
            false => Number(0),
        };
        let hash = match is_long {
            true => key_hash(SEAL, key).to_le_bytes().to_vec(),
            false => Vec::new(),
        };
        let fields = |head_checksum: Value, key: &[u8], value: &[u8]| {
            let values = [
                ("head checksum", head_checksum),
                ("body checksum", body_checksum.clone()),
                ("timestamp", stamp.clone()),
                ("value length", Number(value.len() as u64)),
                (
                    "key length",
                    Number(if is_long { 500 } else { key.len() as u64 }),
                ),
                ("kind", Number(self.code("Kinds of items", kind))),
                ("class", Number(at.class.0.into())),
                ("hash", Bytes(hash.clone())),
                ("key", Bytes(key.to_vec())),
                ("value", Bytes(value.to_vec())),
            ];
            self.assemble("Item", &values)
        };
        let shown = if has_body { key } else { in_head };
        let unsealed = fields(Number(0), shown, value);
        let head = unsealed[4..24 + hash.len() + in_head.len()].to_vec();
        let last = "head part from the body checksum on";
        fields(
            place("Input of a head checksum", last, head, &[]),
            shown,
            value,
        )
    }
}

#[test]
fn items_are_as_the_document_says() {
    let document = read();
    let timestamp = Timestamp(distinct(8, 1));
    for key_bytes in [0, 7, 400, 500] {
        let (key, value) = (noise(1, key_bytes), noise(2, 300));
        let mut content = vec![0; 1024];
        let at = slot(1024);
        for (kind, name) in [(ItemKind::Put, "put"), (ItemKind::Large, "large")] {
            let length = encode(&mut content, SEAL, at, timestamp, kind, &key, &value);
            assert_eq!(
                content[..length],
                document.item(name, at, timestamp, &key, &value)
            );
        }
        let length = encode_tombstone(&mut content, SEAL, at, timestamp, &key);
        assert_eq!(
            content[..length],
            document.item("tombstone", at, timestamp, &key, b"")
        );
    }
    let length = encode(
        &mut [0; 64],
        SEAL,
        slot(64),
        timestamp,
        ItemKind::Part,
        b"",
        &[7; 30],
    );
    let part = document.item("part", slot(64), timestamp, b"", &[7; 30]);
    assert_eq!((length, part[22]), (54, ItemKind::Part as u8));
}

#[test]
fn large_values_and_parts_are_as_the_document_says() {
    let document = read();
    let large = LargeValue {
        value_bytes: distinct(4, 1) as u32,
        checksum: distinct(4, 2) as u32,
        parts: vec![distinct(8, 3), distinct(8, 4)],
    };
    let parts = large.parts.iter().map(|part| part.to_le_bytes().to_vec());
    let expected = document.assemble(
        "Large value",
        &[
            ("length", Number(large.value_bytes.into())),
            ("checksum", Number(large.checksum.into())),
            ("parts", Items(parts.collect())),
        ],
    );
    assert_eq!(large.encode(), expected);

    let part = PartOf {
        key_hash: u128::from(distinct(8, 1)) << 64 | u128::from(distinct(8, 2)),
        timestamp: Timestamp(distinct(8, 3)),
        number: distinct(4, 4) as u32,
    };
    let expected = document.assemble(
        "Part",
        &[
            ("hash", Bytes(part.key_hash.to_le_bytes().to_vec())),
            ("timestamp", Number(part.timestamp.0)),
            ("number", Number(part.number.into())),
            ("piece", Bytes(b"piece".to_vec())),
        ],
    );
    assert_eq!([&part.encode()[..], b"piece"].concat(), expected);
}

/// Assembles a structure with its checksum.
fn sealed(document: &Document, heading: &str, place: u64, fields: &[(&str, Value)]) -> Vec<u8> {
    let assemble = |checksum: Value| {
        let values: Vec<_> = fields
            .iter()
            .cloned()
            .chain([("checksum", checksum)])
            .collect();
        document.assemble(heading, &values)
    };
    let input = [
        ("store", Number(STORE.0)),
        ("place", Number(place)),
        (
            "bytes from the magic on",
            Bytes(assemble(Number(0))[4..].to_vec()),
        ),
    ];
    assemble(document.checksum("Input of a checksum of a header or superblock", &input))
}

#[test]
fn extent_headers_are_as_the_document_says() {
    let header = ExtentHeader {
        store: StoreId(STORE.0),
        extent: ExtentNo(distinct(4, 1) as u32),
        partition: distinct(2, 2) as u16,
        class: ClassNo(distinct(1, 3) as u8),
        sequence: distinct(8, 4),
    };
    let fields = [
        ("magic", Bytes(b"vE".to_vec())),
        ("version", Number(FORMAT_VERSION.into())),
        ("store", Number(STORE.0)),
        ("extent", Number(header.extent.0.into())),
        ("partition", Number(header.partition.into())),
        ("class", Number(header.class.0.into())),
        ("sequence", Number(header.sequence)),
    ];
    let expected = sealed(&read(), "Extent header", header.extent.0.into(), &fields);
    assert_eq!(header.encode()[..], expected);
}

#[test]
fn superblocks_are_as_the_document_says() {
    let document = read();
    let states = [(State::Dirty, "dirty"), (State::Clean, "clean")];
    for (state, name) in states {
        let superblock = Superblock {
            store: STORE,
            sequence: distinct(8, 1),
            incarnation: distinct(4, 2) as u32,
            extents_end: distinct(4, 3) as u32,
            atomic_bytes: distinct(4, 4) as u32,
            index_key_bytes: distinct(2, 5) as u16,
            state,
            image: Some(ImagePlace {
                offset: distinct(8, 6),
                bytes: distinct(8, 7),
                checksum: distinct(4, 8) as u32,
            }),
            durable: (0..PARTITIONS_MAX as u64)
                .map(|partition| Timestamp(distinct(8, 9) + partition))
                .collect(),
        };
        let image = superblock.image.unwrap();
        let marks = superblock
            .durable
            .iter()
            .flat_map(|mark| mark.0.to_le_bytes());
        let fields = [
            ("magic", Bytes(b"vS".to_vec())),
            ("version", Number(FORMAT_VERSION.into())),
            ("label", Bytes(b"KvellVol".to_vec())),
            ("store", Number(STORE.0)),
            ("sequence", Number(superblock.sequence)),
            ("incarnation", Number(superblock.incarnation.into())),
            ("extents end", Number(superblock.extents_end.into())),
            ("extent bytes", Number(EXTENT_BYTES as u64)),
            ("atomic bytes", Number(superblock.atomic_bytes.into())),
            ("partitions", Number(PARTITIONS_MAX as u64)),
            ("index key bytes", Number(superblock.index_key_bytes.into())),
            ("state", Number(document.code("States of a store", name))),
            ("image offset", Number(image.offset)),
            ("image length", Number(image.bytes)),
            ("image checksum", Number(image.checksum.into())),
            ("marks", Bytes(marks.collect())),
        ];
        let slot = superblock.slot() as u64;
        let expected = sealed(&document, "Superblock", slot, &fields);
        assert_eq!(superblock.encode()[..], expected);
    }
}
