//! Sealed pages, superblock, creation mark, bitmap block.

use kreon_base::{
    Checksum, Epoch, Incarnation, LogId, PageBytes, PageNo, SEGMENT_PAGES, SegmentId,
};
use kreon_format::*;

use crate::document::{Document, number};
use crate::values::Value::{self, Bytes, Number};
use crate::values::{STORE, distinct};

impl Document {
    /// The preamble of `page` at `address`, with the expected checksum.
    pub fn preamble(
        &self,
        kind: &str,
        detail: u64,
        page: &PageBytes,
        store: StoreId,
        address: PageNo,
    ) -> Value {
        let input = self.assemble(
            "Input of a page checksum",
            &[
                ("store", Number(store.0)),
                ("page", Number(address.0)),
                ("page from the magic on", Bytes(page[4..].to_vec())),
            ],
        );
        let magic = self.cells("Kinds of pages", "kind", "magic")[kind].as_bytes();
        let version = self.numbers("Kinds of pages", "kind", "version")[kind];
        Bytes(self.assemble(
            "Preamble",
            &[
                ("checksum", Number(Checksum::of(&input).into())),
                ("magic", Bytes(magic.to_vec())),
                ("version", Number(version)),
                ("detail", Number(detail)),
            ],
        ))
    }

    pub fn pointer(&self, pointer: &PagePointer) -> Vec<u8> {
        self.assemble(
            "Page pointer",
            &[
                ("page", Number(pointer.page.0)),
                ("epoch", Number(pointer.epoch.0)),
                ("checksum", Number(pointer.checksum.into())),
            ],
        )
    }
}

pub fn pointer(salt: u8) -> PagePointer {
    PagePointer {
        page: PageNo(distinct(6, salt)),
        epoch: Epoch(distinct(6, salt + 1)),
        checksum: distinct(4, salt + 2) as u32,
    }
}

#[test]
fn a_page_pointer_is_as_the_document_draws_it() {
    let document = Document::read();
    assert_eq!(pointer(3).encode()[..], document.pointer(&pointer(3)));
}

#[test]
fn the_superblock_is_as_the_document_draws_it_in_every_slot() {
    let document = Document::read();
    let slots = document.numbers("Superblock slots", "slot", "page");
    assert_eq!(slots.len(), SUPERBLOCK_PAGES.len());
    let superblock = Superblock {
        store: STORE,
        epoch: Epoch(distinct(8, 1)),
        incarnation: Incarnation(distinct(8, 2)),
        segments: distinct(4, 3) as u32,
        catalogue: pointer(4),
        catalogue_bytes: distinct(8, 7),
    };
    for (slot, address) in slots {
        let slot = number(slot) as usize;
        assert_eq!(SUPERBLOCK_PAGES[slot], PageNo(address));
        let page = superblock.encode(slot);
        let told = document.assemble(
            "Superblock page",
            &[
                (
                    "preamble",
                    document.preamble("superblock", 0, &page, STORE, PageNo(address)),
                ),
                ("label", Bytes(b"KreonVol".to_vec())),
                ("store", Number(STORE.0)),
                ("slot", Number(slot as u64)),
                ("segments", Number(superblock.segments.into())),
                ("epoch", Number(superblock.epoch.0)),
                ("incarnation", Number(superblock.incarnation.0)),
                ("catalogue", Bytes(document.pointer(&superblock.catalogue))),
                ("catalogue bytes", Number(superblock.catalogue_bytes)),
            ],
        );
        assert_eq!(page[..], told, "slot {slot}");
    }
}

#[test]
fn the_creation_mark_is_as_the_document_draws_it() {
    let document = Document::read();
    let page = CreationMark { store: STORE }.encode();
    let told = document.assemble(
        "Creation mark",
        &[
            (
                "preamble",
                document.preamble("creation mark", 0, &page, STORE, CREATION_PAGE),
            ),
            ("label", Bytes(b"KreonNew".to_vec())),
            ("store", Number(STORE.0)),
        ],
    );
    assert_eq!(page[..], told);
    let address = document.cells("Kinds of pages", "kind", "address")["creation mark"];
    assert_eq!(address, format!("page {}", CREATION_PAGE.0));
}

#[test]
fn labels_and_the_store_of_images_are_those_of_the_document() {
    let document = Document::read();
    let label = |heading| document.cells(heading, "field", "meaning")["label"];
    assert_eq!(label("Superblock page"), "ASCII `KreonVol`");
    assert_eq!(label("Creation mark"), "ASCII `KreonNew`");
    let image = b"L0 image";
    let text = format!("XOR the text `{}`", image.escape_ascii());
    assert!(document.prose.iter().any(|line| line.contains(&text)));
    let sealed_for = STORE.0 ^ u64::from_be_bytes(*image);
    assert_eq!(STORE.of_image(), StoreId(sealed_for));
}

/// The record of segment `index` according to the document.
fn told_record(document: &Document, index: usize, record: &SegmentRecord) -> Vec<u8> {
    let kind = ["free", "tree", "log"][index % 3];
    let pages = record.pages.map(u64::to_le_bytes).concat();
    document.assemble(
        "Segment record",
        &[
            ("kind", Number(document.code("Kinds of segments", kind))),
            ("log", Number(record.log.0.into())),
            ("live bytes", Number(record.live_bytes.into())),
            ("sequence", Number(record.sequence)),
            ("pages", Bytes(pages)),
        ],
    )
}

#[test]
fn the_bitmap_block_is_as_the_document_draws_it_in_both_copies() {
    let document = Document::read();
    let group = distinct(3, 1) as u32;
    let mut block = BitmapBlock::new(group, Epoch(distinct(8, 2)));
    for (index, record) in block.segments.iter_mut().enumerate() {
        let salt = index as u8;
        *record = SegmentRecord {
            kind: [SegmentKind::Free, SegmentKind::Tree, SegmentKind::Log][index % 3],
            log: LogId(distinct(2, salt) as u16),
            sequence: distinct(8, salt),
            live_bytes: distinct(4, salt) as u32,
            pages: [1, 2, 3, 4, 5, 6, 7, 8].map(|word| distinct(8, salt + word)),
        };
    }
    assert_eq!(document.at("Kinds of segments").rows.len(), 3);
    for (copy, within) in document.numbers("Bitmap places", "copy", "page in the group") {
        let copy = number(copy) as u8;
        let first = group_first_segment(group).first_page();
        let address = PageNo(first.0 + within);
        assert_eq!(bitmap_page(group, copy), address);
        let (page, _) = block.encode(STORE, copy);
        let records = block.segments.iter().enumerate();
        let records = records.flat_map(|(index, record)| told_record(&document, index, record));
        let told = document.assemble(
            "Bitmap page",
            &[
                (
                    "preamble",
                    document.preamble("bitmap block", 0, &page, STORE, address),
                ),
                ("epoch", Number(block.epoch.0)),
                ("group", Number(group.into())),
                ("copy", Number(copy.into())),
                ("segments", Bytes(records.collect())),
            ],
        );
        assert_eq!(page[..], told, "copy {copy}");
    }
}

#[test]
fn the_first_page_of_a_segment_is_its_number_times_its_pages() {
    let document = Document::read();
    let pages = document.numbers("Limits and sizes", "name", "value")["SEGMENT_PAGES"];
    assert_eq!(pages, SEGMENT_PAGES);
    assert_eq!(SegmentId(7).first_page(), PageNo(7 * pages));
}

#[test]
fn a_catalogue_page_is_as_the_document_draws_it() {
    let document = Document::read();
    let stream: Vec<u8> = (1..=CATALOGUE_PAGE_PAYLOAD_BYTES + 300)
        .map(|at| at as u8 | 1)
        .collect();
    let pages = [distinct(6, 1), distinct(6, 2)].map(PageNo);
    let epoch = Epoch(distinct(6, 3));
    let (chain, head) = encode_chain(STORE, epoch, &stream, &pages).unwrap();
    assert_eq!(head.page, pages[0]);
    let parts = stream.chunks(CATALOGUE_PAGE_PAYLOAD_BYTES);
    for (index, ((address, page), part)) in chain.iter().zip(parts).enumerate() {
        let is_last = index == 1;
        let next = match is_last {
            true => vec![0; PAGE_POINTER_BYTES],
            false => document.pointer(&PagePointer {
                page: pages[1],
                epoch,
                checksum: u32::from_le_bytes(*chain[1].1.first_chunk().unwrap()),
            }),
        };
        let mut payload = part.to_vec();
        payload.resize(CATALOGUE_PAGE_PAYLOAD_BYTES, 0);
        let told = document.assemble(
            "Catalogue page",
            &[
                (
                    "preamble",
                    document.preamble("catalogue page", 0, page, STORE, *address),
                ),
                ("page", Number(address.0)),
                ("epoch", Number(epoch.0)),
                ("length", Number(part.len() as u64)),
                ("more", Number(u64::from(!is_last))),
                ("next", Bytes(next)),
                ("payload", Bytes(payload)),
            ],
        );
        assert_eq!(page[..], told, "page {index}");
    }
}
