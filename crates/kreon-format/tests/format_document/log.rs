//! Log segments, fragments, pads.

use kreon_base::{
    Checksum, Incarnation, KEY_BYTES_MAX, LogId, LogOffset, Lsn, RegionId, RegionOptions, SegmentId,
};
use kreon_format::*;

use crate::catalogue::options;
use crate::document::Document;
use crate::nodes::expiring;
use crate::values::Value::{Bytes, Number};
use crate::values::{STORE, distinct};

const OFFSET: LogOffset = LogOffset(0xf1f2_f3f4_f5f6_f7f8);
const INCARNATION: u16 = 0xabcd;
const DURABLE: Lsn = Lsn(0xa1a2_a3a4_a5a6_a7a8);

fn seal() -> FragmentSeal {
    FragmentSeal {
        store: STORE,
        sequence: distinct(8, 2),
    }
}

/// The parts of the mark in the length word and in the meta word.
fn marks() -> (u64, u64) {
    let mark = u64::from(INCARNATION);
    let low = mark & 0x1ff;
    (low, mark >> 9)
}

impl Document {
    fn fragment_checksum(&self, header: Vec<u8>, rest: Vec<u8>) -> u64 {
        let input = self.assemble(
            "Input of a fragment checksum",
            &[
                ("store", Number(STORE.0)),
                ("sequence", Number(seal().sequence)),
                ("offset", Number(OFFSET.0)),
                ("header behind the checksum", Bytes(header)),
                ("payload and fill", Bytes(rest)),
            ],
        );
        Checksum::of(&input).into()
    }

    fn length_word(&self, length: usize, is_pad: bool) -> u64 {
        self.pack(
            "Length word",
            &[
                ("length", length as u64),
                ("low mark", marks().0),
                ("pad", is_pad.into()),
            ],
        )
    }

    fn meta_word(&self, header: &FragmentHeader, kind: &str) -> u64 {
        self.pack(
            "Meta word",
            &[
                ("key length", header.key_bytes.into()),
                ("kind", self.code("Kinds of records", kind)),
                ("starts record", header.starts_record.into()),
                ("ends record", header.ends_record.into()),
                ("ends unit", header.ends_unit.into()),
                ("has attributes", header.has_attributes.into()),
                ("high mark", marks().1),
            ],
        )
    }

    fn fragment(&self, header: &FragmentHeader, kind: &str, payload: &[u8]) -> Vec<u8> {
        let words = [
            self.length_word(payload.len(), false),
            header.region.0.into(),
            self.meta_word(header, kind),
        ];
        let behind = words.map(|word| (word as u32).to_le_bytes()).concat();
        let fill = vec![0; payload.len().next_multiple_of(RECORD_ALIGN_BYTES) - payload.len()];
        let rest = [payload, &fill].concat();
        self.assemble(
            "Fragment",
            &[
                ("checksum", Number(self.fragment_checksum(behind, rest))),
                ("length word", Number(words[0])),
                ("region", Number(words[1])),
                ("meta word", Number(words[2])),
                ("payload", Bytes(payload.to_vec())),
                ("fill", Bytes(fill)),
            ],
        )
    }

    fn pad(&self, bytes: usize) -> Vec<u8> {
        let word = self.length_word(bytes - PAD_BYTES_MIN, true);
        let durable = match bytes > PAD_BYTES_MIN {
            true => DURABLE.0.to_le_bytes().to_vec(),
            false => Vec::new(),
        };
        let fill = vec![0; bytes - PAD_BYTES_MIN - durable.len()];
        let mut header = (word as u32).to_le_bytes().to_vec();
        header.resize(12, 0);
        let rest = [&durable[..], &fill].concat();
        self.assemble(
            "Pad",
            &[
                ("checksum", Number(self.fragment_checksum(header, rest))),
                ("length word", Number(word)),
                ("durable", Bytes(durable)),
                ("fill", Bytes(fill)),
            ],
        )
    }
}

#[test]
fn the_header_of_a_log_segment_is_as_the_document_draws_it() {
    let document = Document::read();
    let segment = |salt| SegmentId(distinct(4, salt) as u32);
    for (has_previous, has_next) in [(true, true), (true, false), (false, true)] {
        let header = LogSegmentHeader {
            store: STORE,
            log: LogId(distinct(2, 1) as u16),
            segment: segment(2),
            sequence: distinct(8, 3),
            incarnation: Incarnation(distinct(8, 4)),
            previous: has_previous.then(|| segment(5)),
            next: has_next.then(|| segment(6)),
            durable: DURABLE,
        };
        let page = header.encode();
        let address = header.segment.first_page();
        let flags = [
            ("has previous", has_previous.into()),
            ("has next", has_next.into()),
        ];
        let link = |link: Option<SegmentId>| Number(link.map_or(0, |segment| segment.0.into()));
        let told = document.assemble(
            "Log segment header",
            &[
                (
                    "preamble",
                    document.preamble("log segment header", 0, &page, STORE, address),
                ),
                ("store", Number(STORE.0)),
                ("sequence", Number(header.sequence)),
                ("incarnation", Number(header.incarnation.0)),
                ("durable", Number(header.durable.0)),
                ("segment", Number(header.segment.0.into())),
                ("log", Number(header.log.0.into())),
                ("flags", Number(document.pack("Log segment flags", &flags))),
                ("previous", link(header.previous)),
                ("next", link(header.next)),
            ],
        );
        assert_eq!(page[..], told);
    }
}

#[test]
fn a_fragment_is_as_the_document_draws_it_whatever_its_kind_and_flags() {
    let document = Document::read();
    let kinds = [
        ("put", RecordKind::Put),
        ("delete", RecordKind::Delete),
        ("relocation", RecordKind::Relocation),
        ("ingested", RecordKind::Ingested),
        ("delete range", RecordKind::DeleteRange),
        ("make region", RecordKind::MakeRegion),
        ("drop region", RecordKind::DropRegion),
        ("loaded", RecordKind::Loaded),
        ("followed", RecordKind::Followed),
    ];
    assert_eq!(document.at("Kinds of records").rows.len(), kinds.len());
    // More than half of the longest payload, so that all bits of the length count.
    let long = vec![0x5a; (1 << 21) + 5];
    for (index, (name, kind)) in kinds.into_iter().enumerate() {
        let payload = if index == 0 {
            &long[..]
        } else {
            &long[..index]
        };
        let header = FragmentHeader {
            length_bytes: payload.len() as u32,
            region: RegionId(distinct(4, 1) as u32),
            key_bytes: KEY_BYTES_MAX as u32,
            kind,
            starts_record: index % 2 == 0,
            ends_record: index % 3 == 0,
            ends_unit: index == 3,
            incarnation: INCARNATION,
            has_attributes: kind.may_have_attributes(),
        };
        let front = header.encode(&seal(), OFFSET, &[payload]);
        let mut fragment = [&front[..], payload].concat();
        fragment.resize(fragment_bytes(payload.len()), 0);
        assert!(
            fragment == document.fragment(&header, name, payload),
            "{name}"
        );
    }
}

#[test]
fn a_pad_is_as_the_document_draws_it() {
    let document = Document::read();
    for bytes in [8, 16, 24, 4096, LOG_PAYLOAD_BYTES as usize] {
        let mut pad = vec![0xee; bytes];
        encode_pad(&mut pad, &seal(), OFFSET, INCARNATION, DURABLE).unwrap();
        assert!(pad == document.pad(bytes), "{bytes} bytes");
    }
}

#[test]
fn values_of_records_are_as_the_document_says() {
    let document = Document::read();
    for end in [None, Some(&b"end"[..])] {
        let fields = [
            ("has end", Number(end.is_some().into())),
            ("end", Bytes(end.unwrap_or_default().to_vec())),
        ];
        let told = document.assemble("Value of a deleted range", &fields);
        assert_eq!(range_value(end), told);
    }
    let epoch = kreon_base::Epoch(distinct(8, 1));
    for options in [RegionOptions::DEFAULT, options()] {
        let fields = [
            ("dropped", Number(epoch.0)),
            ("options", Bytes(document.options(&options))),
        ];
        let told = document.assemble("Value of a new region", &fields);
        assert_eq!(made_value(epoch, &options), told);
    }
}

#[test]
fn attributes_are_as_the_document_says() {
    let told = Document::read().attributes(expiring());
    assert_eq!(encode_attributes(expiring())[..], told);
}

#[test]
fn a_position_is_sequence_times_payload_plus_the_offset_behind_the_header() {
    let document = Document::read();
    let sizes = document.numbers("Limits and sizes", "name", "value");
    let position = 7 * sizes["LOG_PAYLOAD_BYTES"] + 5000 - sizes["LOG_HEADER_BYTES"];
    assert_eq!(lsn_at(7, 5000), Lsn(position));
}
