//! The manifest of a backup, whose tables stand in a document of their own.

use kreon_base::{Checksum, Epoch, Incarnation, Lsn, PAGE_BYTES, SegmentId};
use kreon_format::*;

use crate::document::Document;
use crate::pages::pointer;
use crate::values::Value::{Bytes, Number};
use crate::values::{STORE, distinct};

/// Tables of manifests, and of the page pointers in them.
const FILES: [&str; 2] = ["backup.md", "format.md"];

fn manifest() -> BackupManifest {
    let place = |salt| BackupPlace {
        file: distinct(4, salt) as u32,
        page: distinct(8, salt + 1),
    };
    let piece = |salt| BackupPiece {
        segment: SegmentId(distinct(4, salt) as u32),
        sequence: distinct(8, salt + 1),
        // Both fill two bytes: a piece ends within its segment.
        first: 0x00fe,
        count: 0x0101,
        checksum: distinct(4, salt + 2) as u32,
        place: place(salt + 3),
    };
    BackupManifest {
        number: distinct(4, 1) as u32,
        time_ms: distinct(8, 2),
        superblock: Superblock {
            store: STORE,
            epoch: Epoch(distinct(6, 3)),
            incarnation: Incarnation(distinct(6, 4)),
            segments: 44,
            catalogue: pointer(5),
            catalogue_bytes: 200,
        },
        log_end: Lsn(distinct(8, 6)),
        pages: [7, 9]
            .map(|salt| BackupPage {
                pointer: pointer(salt),
                place: place(salt),
            })
            .to_vec(),
        pieces: vec![piece(1), piece(3), piece(5)],
    }
}

impl Document {
    fn place(place: &BackupPlace) -> [(&'static str, crate::values::Value); 2] {
        [
            ("file", Number(place.file.into())),
            ("place", Number(place.page)),
        ]
    }

    fn backup_page(&self, page: &BackupPage) -> Vec<u8> {
        let pointer = ("pointer", Bytes(self.pointer(&page.pointer)));
        let [file, place] = Self::place(&page.place);
        self.assemble("Page record", &[pointer, file, place])
    }

    fn backup_piece(&self, piece: &BackupPiece) -> Vec<u8> {
        let [file, place] = Self::place(&piece.place);
        self.assemble(
            "Piece record",
            &[
                ("segment", Number(piece.segment.0.into())),
                ("first", Number(piece.first.into())),
                ("count", Number(piece.count.into())),
                ("sequence", Number(piece.sequence)),
                ("checksum", Number(piece.checksum.into())),
                file,
                place,
            ],
        )
    }

    fn backup_header(&self, manifest: &BackupManifest, body: &[u8], checksum: u32) -> Vec<u8> {
        self.assemble(
            "Manifest header",
            &[
                ("label", Bytes(b"KreonBak".to_vec())),
                ("version", Number(1)),
                ("checksum", Number(checksum.into())),
                ("store", Number(manifest.superblock.store.0)),
                ("number", Number(manifest.number.into())),
                ("epoch", Number(manifest.superblock.epoch.0)),
                ("log end", Number(manifest.log_end.0)),
                ("page count", Number(manifest.pages.len() as u64)),
                ("piece count", Number(manifest.pieces.len() as u64)),
                ("time", Number(manifest.time_ms)),
                ("body checksum", Number(Checksum::of(body).into())),
            ],
        )
    }

    fn manifest(&self, manifest: &BackupManifest) -> Vec<u8> {
        let mut body = manifest.superblock.encode(0).to_vec();
        body.extend(
            manifest
                .pages
                .iter()
                .flat_map(|page| self.backup_page(page)),
        );
        body.extend(
            manifest
                .pieces
                .iter()
                .flat_map(|piece| self.backup_piece(piece)),
        );
        body.resize(body.len().next_multiple_of(PAGE_BYTES), 0);
        let unsealed = self.backup_header(manifest, &body, 0);
        assert_eq!(unsealed.len(), PAGE_BYTES);
        let mut bytes = self.backup_header(manifest, &body, Checksum::of(&unsealed));
        bytes.extend(body);
        bytes
    }
}

#[test]
fn the_manifest_of_a_backup_is_as_its_document_says() {
    let document = Document::read_files(&FILES);
    assert_eq!(manifest().encode(), document.manifest(&manifest()));
    let version = &document.at("Manifest header").rows[1];
    assert_eq!(
        (&version["field"][..], &version["meaning"][..]),
        ("version", "1")
    );
    let label = document.cells("Manifest header", "field", "meaning")["label"];
    assert_eq!(label, "ASCII `KreonBak`");
}

#[test]
fn a_manifest_that_is_made_from_the_document_decodes() {
    let told = Document::read_files(&FILES).manifest(&manifest());
    assert_eq!(BackupManifest::decode(&told).unwrap(), manifest());
}
