//! Superblocks that verify, and say what cannot be.

use kreon_base::{Checksum, Epoch, ErrorKind, PageBytes};
use kreon_format::{SUPERBLOCK_PAGES, Superblock};

use super::*;

/// The store of [`Bench::filled`] with a superblock that was `changed` in all four slots.
fn with_superblock(changed: impl Fn(&mut Superblock)) -> Image {
    let mut image = Bench::filled().closed();
    let bytes = image.bytes(SUPERBLOCK_PAGES[0].offset_bytes(), 4096);
    let page: &PageBytes = bytes.as_slice().try_into().unwrap();
    let mut superblock = Superblock::decode(page, 0).unwrap();
    changed(&mut superblock);
    for (slot, page) in SUPERBLOCK_PAGES.iter().enumerate() {
        image.write(page.offset_bytes(), &superblock.encode(slot)[..]);
    }
    image
}

fn corruption(image: Image) -> String {
    let error = refused(image, options());
    assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
    error.to_string()
}

#[test]
fn a_catalogue_of_another_length_than_the_superblock_says_is_corruption() {
    let shorter = corruption(with_superblock(|s| s.catalogue_bytes += 1));
    assert!(shorter.contains("the superblock says"), "{shorter}");
    let longer = corruption(with_superblock(|s| s.catalogue_bytes -= 1));
    assert!(longer.contains("the superblock says"), "{longer}");
}

#[test]
fn a_volume_of_more_groups_than_the_catalogue_knows_is_corruption() {
    let mut image = with_superblock(|s| s.segments += 1000);
    // As long as it says.
    image.set_len(image.len_bytes() + 1000 * kreon_base::SEGMENT_BYTES);
    let text = corruption(image);
    assert!(text.contains("the catalogue knows 1 groups"), "{text}");
}

#[test]
fn a_catalogue_of_another_epoch_is_corruption() {
    let changed = |s: &mut Superblock| s.catalogue.epoch = Epoch(s.catalogue.epoch.0 + 1);
    corruption(with_superblock(changed));
}

#[test]
fn a_store_of_a_newer_format_is_refused_with_its_version() {
    let mut image = with_superblock(|_| {});
    for page in SUPERBLOCK_PAGES {
        let mut bytes = image.bytes(page.offset_bytes(), 4096);
        bytes[6] = 9;
        // Sealed as every version of the format seals.
        let checksum = Checksum::new()
            .with(&7u64.to_le_bytes())
            .with(&page.0.to_le_bytes())
            .with(&[0; 4])
            .with(&bytes[4..])
            .finish();
        bytes[..4].copy_from_slice(&checksum.to_le_bytes());
        image.write(page.offset_bytes(), &bytes);
    }
    let error = refused(image, options());
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(error.to_string().contains("newer format, 9;"), "{error}");
}

#[test]
fn nothing_is_not_found_unless_a_store_may_be_made() {
    let never = Options {
        create: false,
        ..options()
    };
    let error = refused(Image::default(), never.clone());
    assert_eq!(error.kind(), ErrorKind::NotFound);
    let image = Bench::filled().closed();
    let bench = Bench::open(image, never).unwrap();
    assert_eq!(bench.engine.region_names(), ["r"]);
}

#[test]
fn something_else_is_refused_and_left_alone() {
    for len_bytes in [100, 1 << 20] {
        let mut image = Image::new(len_bytes);
        image.write(0, b"#!/bin/sh\n");
        let error = refused(image, options());
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    }
}
