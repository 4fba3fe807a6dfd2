//! Blocks of an image of the index.

use kvell::format::*;

use crate::document::Document;
use crate::noise;
use crate::values::Value::{Bytes, Number};
use crate::values::{STORE, distinct};

const HASH: u128 = 0x0102_0304_0506_0708_090a_0b0c_0d0e_0f10;

fn records() -> [ImageRecord<'static>; 6] {
    [
        ImageRecord::Extent {
            extent: ExtentNo(distinct(4, 1) as u32),
            class: ClassNo(9),
            used: &[7; 16],
        },
        ImageRecord::Outdated {
            offset: distinct(8, 2),
            class: ClassNo(3),
            key_hash: HASH,
        },
        ImageRecord::Tombstone {
            offset: distinct(8, 3),
            timestamp: Timestamp(distinct(8, 4)),
            key_hash: HASH,
        },
        ImageRecord::Key {
            offset: distinct(8, 5),
            bytes: b"key",
            is_whole: true,
        },
        ImageRecord::Key {
            offset: distinct(8, 6),
            bytes: b"the first bytes",
            is_whole: false,
        },
        ImageRecord::Large {
            head: distinct(8, 12),
            timestamp: Timestamp(distinct(8, 13)),
            parts: &[5; 16],
        },
    ]
}

fn header() -> ImageHeader {
    ImageHeader {
        store: STORE,
        number: distinct(4, 7) as u32,
        partition: distinct(2, 8) as u16,
        index_key_bytes: distinct(2, 9) as u16,
        incarnation: distinct(4, 10) as u32,
        sequence: distinct(8, 11),
    }
}

const OFFSET: u64 = 5 << 20;

/// A block with the records, and the length of these.
fn block() -> (Vec<u8>, usize) {
    let mut bytes = Vec::new();
    records()
        .iter()
        .for_each(|record| record.encode(&mut bytes));
    let mut block = vec![1; IMAGE_BLOCK_BYTES];
    block[IMAGE_HEADER_BYTES..][..bytes.len()].copy_from_slice(&bytes);
    header().seal(&mut block, OFFSET, bytes.len());
    (block, bytes.len())
}

/// The records of the document, field by field.
fn expected_records(document: &Document) -> Vec<u8> {
    let code = |name: &str| {
        let section = document.at("Records");
        let row = section.rows.iter().find(|row| row["record"] == name);
        row.expect("a record")["code"]
            .parse::<u8>()
            .expect("a code")
    };
    let eight = |seed| distinct(8, seed).to_le_bytes();
    [
        &[code("extent"), 9, 2, 0][..],
        &(distinct(4, 1) as u32).to_le_bytes(),
        &[7; 16],
        &[code("outdated"), 3],
        &eight(2),
        &HASH.to_le_bytes(),
        &[code("tombstone")],
        &eight(3),
        &eight(4),
        &HASH.to_le_bytes(),
        &[code("key"), 3, 0],
        &eight(5),
        b"key",
        &[code("longer key"), 15, 0],
        &eight(6),
        b"the first bytes",
        &[code("large value"), 2, 0],
        &eight(12),
        &eight(13),
        &[5; 16],
    ]
    .concat()
}

#[test]
fn blocks_of_an_image_are_as_the_document_says() {
    let document = Document::read_files(&["format-kvell.md"]);
    let (header, (block, used_bytes)) = (header(), block());
    let mut records = expected_records(&document);
    assert_eq!(records.len(), used_bytes);
    records.resize(IMAGE_BLOCK_BYTES - IMAGE_HEADER_BYTES, 0);
    let assemble = |checksum| {
        let fields = [
            ("checksum", checksum),
            ("magic", Bytes(b"vI".to_vec())),
            ("version", Number(FORMAT_VERSION.into())),
            ("store", Number(STORE.0)),
            ("number", Number(header.number.into())),
            ("partition", Number(header.partition.into())),
            ("index key bytes", Number(header.index_key_bytes.into())),
            ("used", Number(used_bytes as u64)),
            ("incarnation", Number(header.incarnation.into())),
            ("sequence", Number(header.sequence)),
            ("records", Bytes(records.clone())),
        ];
        document.assemble("Block of an image", &fields)
    };
    let sealed = assemble(Number(0))[4..].to_vec();
    let input = [
        ("store", Number(STORE.0)),
        ("offset", Number(OFFSET)),
        ("bytes from the magic on", Bytes(sealed)),
    ];
    let heading = "Input of a checksum of a block of an image";
    assert!(assemble(document.checksum(heading, &input)) == block);
}

#[test]
fn a_block_of_an_image_gives_back_its_header_and_records() {
    let (block, _) = block();
    let (found, read, checksum) = ImageHeader::decode(&block, STORE, OFFSET).expect("a block");
    assert_eq!(found, header());
    assert_eq!(checksum.to_le_bytes(), block[..4]);
    assert_eq!(read.collect::<Vec<_>>(), records().map(Some));
}

#[test]
fn a_block_of_an_image_with_a_changed_bit_or_at_another_place_is_refused() {
    let (mut block, used_bytes) = block();
    for byte in (0..IMAGE_HEADER_BYTES + used_bytes + 9).chain([IMAGE_BLOCK_BYTES - 1]) {
        block[byte] ^= 4;
        assert!(
            ImageHeader::decode(&block, STORE, OFFSET).is_err(),
            "{byte}"
        );
        block[byte] ^= 4;
    }
    assert!(ImageHeader::decode(&block, STORE, OFFSET + 4096).is_err());
    assert!(ImageHeader::decode(&block[..100], STORE, OFFSET).is_err());
}

#[test]
fn records_of_any_bytes_end() {
    for seed in 0..2000 {
        let mut block = vec![0; IMAGE_HEADER_BYTES + 200];
        let bytes = noise(seed, 200);
        block[IMAGE_HEADER_BYTES..].copy_from_slice(&bytes);
        // Codes of records more often than chance has it.
        block[IMAGE_HEADER_BYTES] = (seed % 6) as u8;
        header().seal(&mut block, OFFSET, 200);
        let (_, records, _) = ImageHeader::decode(&block, STORE, OFFSET).expect("sealed");
        assert!(records.count() <= 200);
    }
}
