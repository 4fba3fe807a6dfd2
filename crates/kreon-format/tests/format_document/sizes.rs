//! Limits, versions, pictures, and a check that other tests compare every number.

use kreon_base::*;
use kreon_format::*;

use crate::document::{Document, draw, number, numbers_in};

macro_rules! by_name {
    ($($name:ident),+ $(,)?) => { [$((stringify!($name), $name as u64)),+] };
}

#[test]
fn limits_and_sizes_are_those_of_the_code() {
    let constants = by_name![
        PAGE_BYTES,
        SEGMENT_BYTES,
        SEGMENT_PAGES,
        GROUP_SEGMENTS,
        GROUP_HEAD_PAGES,
        VOLUME_SEGMENTS_MAX,
        PAGE_NO_MAX,
        EPOCH_MAX,
        INCARNATION_MAX,
        LOG_OFFSET_MAX,
        LOG_SEQUENCE_MAX,
        MOVED_SEQUENCE_MIN,
        LOG_HEADER_BYTES,
        LOG_PAYLOAD_BYTES,
        RECORD_ALIGN_BYTES,
        FRAGMENT_HEADER_BYTES,
        PAD_BYTES_MIN,
        KEY_BYTES_MAX,
        VALUE_BYTES_MAX,
        LONG_KEY_STORED_BYTES,
        INLINE_VALUE_BYTES_MAX,
        NODE_HEADER_BYTES,
        PAGE_POINTER_BYTES,
        FILTER_BITS_PER_KEY_MAX,
        REGION_NAME_BYTES_MAX,
        TREE_LEVELS_MAX,
        CATALOGUE_PAGE_PAYLOAD_BYTES,
        RANGE_END_BYTES_MAX,
        RANGE_VALUE_BYTES_MAX,
        DROPPED_VALUE_BYTES,
        MADE_VALUE_BYTES_MAX,
        REGION_OPTIONS_BYTES,
        FORMAT_VERSION_MIN,
        FORMAT_VERSION,
    ];
    let document = Document::read();
    let told = document.numbers("Limits and sizes", "name", "value");
    assert_eq!(told, constants.into());
}

#[test]
fn the_versions_of_the_format_are_those_that_this_build_reads() {
    let document = Document::read();
    let rows = document.at("Versions of the format").rows.iter();
    let told: Vec<_> = rows.map(|row| number(&row["version"])).collect();
    let read: Vec<_> = (FORMAT_VERSION_MIN..=FORMAT_VERSION)
        .map(u64::from)
        .collect();
    assert_eq!(told, read);
}

#[test]
fn the_picture_of_the_volume_has_the_numbers_of_the_code() {
    let document = Document::read();
    let picture = &document.at("The volume").picture;
    let pages = |from: u64, to: u64| vec![from, to - 1];
    let [head, segment] = [GROUP_HEAD_PAGES, SEGMENT_PAGES];
    let header_pages = u64::from(LOG_HEADER_BYTES) / PAGE_BYTES as u64;
    let last = GROUP_SEGMENTS as u64 - 1;
    let copies = [0, 1].map(|copy| bitmap_page(0, copy).0);
    let expected = [
        vec![0, 1, 2],
        vec![0, 1, last],
        // Segment 0: its head and the pages behind it.
        vec![0],
        pages(0, head),
        pages(head, segment),
        // The head: pages of slots and copies, then their numbers.
        SUPERBLOCK_PAGES.map(|page| page.0).to_vec(),
        copies.to_vec(),
        vec![0, 1, 2, 3],
        vec![0],
        vec![0, 1],
        // Header pages of a log segment, and of a tree segment.
        vec![header_pages - 1],
        pages(header_pages, segment),
        pages(0, segment),
    ];
    assert_eq!(numbers_in(&picture.join("\n")), expected.concat());
}

#[test]
fn every_structure_of_fixed_fields_is_drawn_as_its_table_says() {
    let document = Document::read();
    let mut count = 0;
    for (heading, section) in &document.sections {
        // The input of a checksum is not stored on the device.
        if section.has_offsets() && !heading.starts_with("Input of") {
            let (told, drawn) = (section.picture.join("\n"), draw(section).join("\n"));
            assert_eq!(
                told, drawn,
                "the picture of {heading:?} should be\n{drawn}\n"
            );
            count += 1;
        }
    }
    assert!(count >= 10, "{count} pictures");
}

/// Columns whose numbers other tests compare with the code.
const CHECKED: [&str; 11] = [
    "offset",
    "bytes",
    "bits",
    "code",
    "value",
    "since",
    "version",
    "slot",
    "page",
    "copy",
    "page in the group",
];

#[test]
fn numbers_stand_where_a_test_compares_them_with_the_code() {
    let document = Document::read();
    let cells = document.sections.values().flat_map(|section| &section.rows);
    let cells = cells
        .flatten()
        .filter(|(column, _)| !CHECKED.contains(&column.as_str()));
    let texts = cells.map(|(_, cell)| cell).chain(&document.prose);
    for text in texts {
        let is_small = |number: &u64| *number <= 2;
        assert!(numbers_in(text).iter().all(is_small), "{text}");
    }
    let pictures = document
        .sections
        .iter()
        .filter(|(_, section)| !section.has_offsets());
    let pictures = pictures.filter(|(heading, _)| *heading != "The volume");
    for (heading, section) in pictures {
        assert_eq!(numbers_in(&section.picture.join("\n")), [0; 0], "{heading}");
    }
}
