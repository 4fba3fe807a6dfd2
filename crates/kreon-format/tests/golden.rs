//! The exact bytes of every structure. A change here is a change of the format: it needs a new `FORMAT_VERSION`, and
//! the old version must remain readable.
#![allow(missing_docs)]

mod samples;

use std::num::NonZeroU64;

use kreon_base::{
    Attributes, Checksum, Codec, Epoch, LogId, LogOffset, Lsn, PAGE_BYTES, PageNo, Payload,
    RegionId, RegionOptions, Timestamp,
};
use kreon_format::*;
use samples::*;

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The first 64 bytes, and a checksum of all.
fn digest(bytes: &[u8]) -> String {
    format!("{} {:08x}", hex(&bytes[..64]), Checksum::of(bytes))
}

#[test]
fn page_pointer_bytes() {
    assert_eq!(
        hex(&pointer(1).encode()),
        "0110000000000800000000000100dec0"
    );
}

#[test]
fn superblock_bytes() {
    assert_eq!(
        digest(&*superblock().encode(2)),
        "9c3158ee6b5306004b72656f6e566f6cefcdab896745230102000000b8010000221100000000000005000000000000000110000000000800000000000100dec0 8b94d472"
    );
}

#[test]
fn creation_mark_bytes() {
    assert_eq!(
        digest(&*CreationMark { store: STORE }.encode()),
        "20273d4e6b4d03004b72656f6e4e6577efcdab896745230100000000000000000000000000000000000000000000000000000000000000000000000000000000 3e8db681"
    );
}

#[test]
fn bitmap_block_bytes() {
    assert_eq!(
        digest(&*bitmap().encode(STORE, 1).0),
        "e6268fe16b4201005500000000000000030000000100000001000000000000000000000000000000ffffffffffffffff01000000000000000200000000000000 35bdc8c7"
    );
}

const CATALOGUE_OF_VERSION_2: &str = "ffffffff020900000002000000010000000600636974696573000002030210000000000900000000000200dec040420f0000000000581b00000000000032000000000000000008000000000000000002000000000064000000000000000400000000000000010000006800000000000000001000000000000005000000000000008813000000000000010400000006000000000000000105000000010000005a000000000000006810000000000000cc100000000000000100000001000000030210000000000900000000000200dec040420f0000000000581b0000000000003200000000000000010000008403000000008a1b00000100000000000000000000000000000000000000000000000000000000000000000000000200000001030000000000ddccbbaa01030000000000ddccbbaa";

#[test]
fn catalogue_bytes() {
    assert_eq!(
        hex(&catalogue().encode()),
        "ffffffff030900000002000000010000000600636974696573000002030210000000000900000000000200dec040420f0000000000581b000000000000320000000000000000080000000000000000010000000310000000000a00000000000300dec002000000000064000000000000000400000000000000010000006800000000000000001000000000000005000000000000008813000000000000010400000006000000000000000105000000010000005a000000000000006810000000000000cc100000000000000100000001000000030210000000000900000000000200dec040420f0000000000581b0000000000003200000000000000010000008403000000008a1b00000100000000000000000000000000000000000000000000000000000000000000000000000200000001030000000000ddccbbaa01030000000000ddccbbaa"
    );
}

#[test]
fn a_log_that_is_kept_for_a_change_feed_has_a_bit_in_its_number_and_a_position() {
    let mut followed = catalogue();
    let mut bytes = hex(&followed.encode());
    followed.logs[0].followed_from = Some(Lsn(96));
    // The number of the first log, and its marker.
    let at = bytes.find("0000640000000000000004").unwrap();
    bytes.replace_range(at..at + 4, "00806000000000000000");
    assert_eq!(hex(&followed.encode()), bytes);
    assert_eq!(Catalogue::decode(&followed.encode()).unwrap(), followed);
}

#[test]
fn catalogue_bytes_of_version_2_read_as_a_catalogue_without_pages_of_regions() {
    let mut expected = catalogue();
    expected.region_pages.clear();
    let mut bytes = expected.encode();
    // Count of and pointers to pages of regions follow the regions.
    let mut without = expected.clone();
    without.regions.clear();
    let at = 13 + bytes.len() - without.encode().len();
    assert_eq!(bytes.drain(at..at + 4).collect::<Vec<_>>(), [0; 4]);
    bytes[4] = 2;
    assert_eq!(hex(&bytes), CATALOGUE_OF_VERSION_2);
    assert_eq!(Catalogue::decode(&bytes).unwrap(), expected);
}

#[test]
fn region_page_bytes() {
    let pages = encode_region_pages(&catalogue().regions);
    let expected = "feffffff02000000010000000600636974696573000002030210000000000900000000000200dec040420f0000000000581b000000000000320000000000000000080000000000000000";
    assert_eq!(
        pages.iter().map(|page| hex(page)).collect::<Vec<_>>(),
        [expected]
    );
    assert_eq!(decode_region_page(&pages[0]).unwrap(), catalogue().regions);
    let names = catalogue().regions.into_iter();
    let names: Vec<_> = names
        .map(|region| (region.id, (region.name, region.options)))
        .collect();
    assert_eq!(Catalogue::decode_names(&pages[0]), names);
}

#[test]
fn region_with_options_bytes() {
    let options = RegionOptions {
        compression: Codec::Zstd,
        ttl_ms: NonZeroU64::new(86_400_000),
        inline_value_bytes_max: Some(16),
        growth_factor: Some(4),
    };
    let region = RegionRecord {
        id: RegionId(7),
        name: "r".into(),
        options,
        log: LogId(0),
        levels: vec![TreeRecord::default()],
    };
    let pages = encode_region_pages(std::slice::from_ref(&region));
    // Behind the log: the count of trees with its highest bit set, and the options.
    let expected =
        "feffffff 01000000 07000000 0100 72 0000 81 02 04 1000 005c26050000 00".replace(' ', "");
    assert_eq!(hex(&pages[0]), expected);
    assert_eq!(decode_region_page(&pages[0]).unwrap(), [region]);
}

#[test]
fn regions_are_spread_over_as_many_pages_as_they_need() {
    let region = |id| RegionRecord {
        id: RegionId(id),
        name: "n".repeat(255),
        ..catalogue().regions[0].clone()
    };
    let regions: Vec<_> = (0..40).map(region).collect();
    let pages = encode_region_pages(&regions);
    assert!(pages.len() > 1);
    assert!(
        pages
            .iter()
            .all(|page| page.len() <= CATALOGUE_PAGE_PAYLOAD_BYTES)
    );
    let read: Vec<_> = pages
        .iter()
        .flat_map(|page| decode_region_page(page).unwrap())
        .collect();
    assert_eq!(read, regions);
    for cut in 0..pages[0].len() {
        assert!(
            decode_region_page(&pages[0][..cut]).is_err(),
            "cut at {cut}"
        );
    }
    assert!(decode_region_page(&catalogue().encode()).is_err());
}

#[test]
fn value_of_a_new_region_bytes() {
    let value = made_value(Epoch(0x0102), &RegionOptions::DEFAULT);
    assert_eq!(hex(&value), "0201000000000000");
    assert_eq!(
        read_made_value(&value).unwrap(),
        (Epoch(0x0102), RegionOptions::DEFAULT)
    );
    let options = RegionOptions {
        compression: Codec::Lz4,
        ..RegionOptions::DEFAULT
    };
    let packed = made_value(Epoch(77), &options);
    assert_eq!(hex(&packed), "4d000000000000000100ffff000000000000");
    assert_eq!(read_made_value(&packed).unwrap(), (Epoch(77), options));
    for cut in (0..packed.len()).filter(|cut| *cut != 8) {
        assert!(read_made_value(&packed[..cut]).is_err(), "cut at {cut}");
    }
}

#[test]
fn catalogue_bytes_of_version_1_read_as_a_catalogue_without_image() {
    let text = "0900000002000000010000000600636974696573000002030210000000000900000000000200dec040420f0000000000581b0000000000003200000000000000000800000000000000000200000000006400000000000000040000000000000001000000680000000000000000100000000000000500000000000000881300000000000001040000000600000000000000010500000001000000000000000000000000000000000000000000000000000000000000000200000001030000000000ddccbbaa01030000000000ddccbbaa";
    let digits = text.as_bytes().chunks(2).map(std::str::from_utf8);
    let bytes: Vec<u8> = digits
        .map(|digits| u8::from_str_radix(digits.unwrap(), 16).unwrap())
        .collect();
    let mut expected = catalogue();
    expected.logs[0].image.clear();
    expected.region_pages.clear();
    assert_eq!(Catalogue::decode(&bytes).unwrap(), expected);
    let names = Catalogue::decode_names(&bytes[..70]);
    let cities = ("cities".to_owned(), RegionOptions::DEFAULT);
    assert_eq!(names, [(RegionId(1), cities)]);
    assert_eq!(names, Catalogue::decode_names(&expected.encode()[..75]));
}

#[test]
fn catalogue_page_bytes() {
    let payload = vec![0x5a; CATALOGUE_PAGE_PAYLOAD_BYTES + 1];
    let pages = [PageNo(100), PageNo(200)];
    let (chain, _) = encode_chain(STORE, Epoch(8), &payload, &pages).unwrap();
    assert_eq!(
        digest(&*chain[0].1),
        "b1c85ff76b430200640000000000080000000000d80f0100c8000000000008000000000094afcdc75a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a b0b8395c"
    );
    assert_eq!(
        digest(&*chain[1].1),
        "94afcdc76b430200c8000000000008000000000001000000000000000000000000000000000000005a0000000000000000000000000000000000000000000000 0b22546d"
    );
}

#[test]
fn log_segment_header_bytes() {
    assert_eq!(
        digest(&*segment_header().encode()),
        "f18be7e46b470100efcdab89674523010c0000000000000005000000000000000903000000000000030000000100030002000000070000000000000000000000 319a81d5"
    );
}

#[test]
fn fragment_and_pad_bytes() {
    assert_eq!(
        hex(&fragment()),
        "3741f9060d004073030000000500e2aa61626364653132333435363738000000"
    );
    assert_eq!(hex(&pad(8)), "f17fb8c1000040f3");
    assert_eq!(
        hex(&pad(24)),
        "6dd7e0e9100040f334120000000000000000000000000000"
    );
}

#[test]
fn attributes_bytes() {
    let expires = Timestamp::of_ms(0x0001_9a2b_3c4d);
    let attributes = Attributes::expiring(Some(expires));
    assert_eq!(hex(&encode_attributes(attributes)), "4d3c2b9a01000000");
    // In a record, behind the key, with bit 24 of the meta word.
    let header = FragmentHeader {
        has_attributes: true,
        ..fragment_header()
    };
    let payload = [b"abcde", &encode_attributes(attributes)[..]];
    let front = header.encode(&SEAL, LogOffset(0), &payload);
    assert_eq!(hex(&front[4..]), "0d004073030000000500e2ab");
    // In a leaf, behind the length of the value.
    let mut builder = LeafBuilder::new();
    let value = b"v";
    builder
        .push(b"k", Lsn(0), Payload::Inline { value, attributes })
        .unwrap();
    let mut page = [0; PAGE_BYTES];
    builder.finish(&identity(1, 0), &mut page).unwrap();
    // Tag, key length, value length, attributes, value; the key is the prefix.
    assert_eq!(hex(&page[4096 - 13..]), "4100014d3c2b9a01000000766b");
}

#[test]
fn leaf_bytes() {
    let (page, pointer) = leaf();
    assert_eq!(
        digest(&page),
        "5632b57e6b4e0100002000000000090000000000030000000c0004005f0100003100000000000000310000000000000031303030303030303130303030303030 d2fda832"
    );
    assert_eq!(
        hex(&page[4096 - 165..]),
        "0707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707010a303100010930036f6c6406093050000000000000000800000000001409305a0000000000000000000000000100010002001000000000ff00010010000000000075736572"
    );
    assert_eq!(page[..4], pointer.checksum.to_le_bytes());
}

#[test]
fn index_node_bytes() {
    let (page, pointer) = index();
    assert_eq!(
        digest(&page),
        "654258976b4e01010120000000000900000000000300000009000400620b00003100000000000000310000000000000031000000000000003100000000000000 2cc4595a"
    );
    assert_eq!(
        hex(&page[4096 - 120..]),
        "000000000600dec0000a30300510000000000c00000000000500dec000020410000000000b00000000000400dec001010310000000000a00000000000300dec001010210000000000900000000000200dec000010110000000000800000000000100dec00010000000000700000000000000dec075736572"
    );
    assert_eq!(page[..4], pointer.checksum.to_le_bytes());
}
