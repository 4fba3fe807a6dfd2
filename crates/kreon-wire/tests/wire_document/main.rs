//! The layouts in `docs/wire.md` equal those that the encoders write.
//!
//! Each structure is assembled from the tables of the document and compared with the bytes of its encoder, so a number
//! that changes only in the document or only in the code fails here. Values fill all bytes of their fields, as far as
//! the fields allow.
#![allow(missing_docs)]

mod clients;
mod control;
// The same reader of tables and pictures as that of `docs/format.md`.
#[allow(dead_code)]
#[path = "../../../kreon-format/tests/format_document/document.rs"]
mod document;
mod nodes;
mod packets;
mod tables;
#[allow(dead_code)]
#[path = "../../../kreon-format/tests/format_document/values.rs"]
mod values;

use document::Document;
use kreon_base::{Epoch, Incarnation, Lsn};
use kreon_wire::*;
use values::Value::{self, Number};
use values::distinct;

fn wire() -> Document {
    Document::read_files(&["wire.md"])
}

/// A position whose bytes are all different, within what the log can have.
fn lsn(salt: u8) -> Lsn {
    Lsn(distinct(7, salt))
}

fn extent() -> (Extent, Vec<(&'static str, Value)>) {
    let extent = Extent {
        slot: Slot {
            incarnation: Incarnation(distinct(6, 1)),
            epoch: Epoch(distinct(6, 2)),
        },
        log_end: lsn(3),
    };
    let values = vec![
        ("incarnation", Number(extent.slot.incarnation.0)),
        ("epoch", Number(extent.slot.epoch.0)),
        ("log end", Number(extent.log_end.0)),
    ];
    (extent, values)
}

fn room() -> (Room, Vec<(&'static str, Value)>) {
    let room = Room {
        log: GrantBytes(distinct(8, 4)),
        pages: GrantBytes(distinct(8, 5)),
        space: GrantBytes(distinct(8, 6)),
    };
    let values = vec![
        ("room log", Number(room.log.0)),
        ("room pages", Number(room.pages.0)),
        ("room space", Number(room.space.0)),
    ];
    (room, values)
}
