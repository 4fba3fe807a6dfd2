//! Structures assembled from the tables of the document.

use kreon_format::StoreId;

use crate::document::{Document, Row, number};

pub const STORE: StoreId = StoreId(0xf123_4567_89ab_cdef);

/// Content of a field.
#[derive(Clone, Debug)]
pub enum Value {
    Number(u64),
    Bytes(Vec<u8>),
    /// Items of equal width.
    Items(Vec<Vec<u8>>),
}

use Value::{Bytes, Items, Number};

/// A number whose bytes are all different and not zero.
pub fn distinct(bytes: u32, salt: u8) -> u64 {
    let digits = (1..=bytes as u8).map(|byte| u64::from((byte * 16) | (salt & 15)));
    digits.fold(0, |number, byte| number << 8 | byte)
}

impl Document {
    /// The bytes of a structure, from the values of all fields except zero ones.
    pub fn assemble(&self, heading: &str, values: &[(&str, Value)]) -> Vec<u8> {
        self.assemble_version(heading, u8::MAX, values)
    }

    /// Like [`assemble`](Self::assemble), with the fields of `version`.
    pub fn assemble_version(
        &self,
        heading: &str,
        version: u8,
        values: &[(&str, Value)],
    ) -> Vec<u8> {
        let mut out = Vec::new();
        let mut taken = 0;
        for row in &self.at(heading).rows {
            let place = format!("{heading}: {}", row["field"]);
            if let Some(offset) = row.get("offset").filter(|offset| !offset.is_empty()) {
                assert_eq!(out.len() as u64, number(offset), "{place} stands elsewhere");
            }
            if row.get("since").map_or(1, |since| number(since)) > version.into() {
                continue;
            }
            let value = values.iter().find(|(field, _)| *field == row["field"]);
            taken += usize::from(value.is_some());
            let value = value.map(|(_, value)| value.clone());
            out.extend(field_bytes(row, value, &place));
        }
        let given = values.len();
        assert_eq!(taken, given, "{heading} has other fields than the code");
        out
    }

    /// A word, from the values of all fields except zero ones.
    pub fn pack(&self, heading: &str, values: &[(&str, u64)]) -> u64 {
        let (mut word, mut next, mut taken) = (0, 0, 0);
        for row in &self.at(heading).rows {
            let bits = &row["bits"];
            let (first, last) = bits.split_once('-').unwrap_or((bits, bits));
            let (first, last) = (number(first), number(last));
            assert_eq!(first, next, "{heading}: bit {next} belongs to no field");
            next = last + 1;
            let value = values.iter().find(|(field, _)| *field == row["field"]);
            let Some((field, value)) = value else {
                assert_eq!(row["field"], "zero", "{heading}");
                continue;
            };
            assert!(value >> (next - first) == 0, "{heading}: {field} is wider");
            word |= value << first;
            taken += 1;
        }
        assert!(next.is_multiple_of(8), "{heading} has {next} bits");
        assert_eq!(taken, values.len(), "{heading} has other fields");
        word
    }

    /// The code of a kind.
    pub fn code(&self, heading: &str, kind: &str) -> u64 {
        self.numbers(heading, "kind", "code")[kind]
    }
}

fn field_bytes(row: &Row, value: Option<Value>, place: &str) -> Vec<u8> {
    let widths = &row["bytes"];
    let is_zero = row["field"] == "zero" || row["field"] == "fill";
    match value {
        None if is_zero && widths == "any" => Vec::new(),
        None if is_zero => vec![0; number(widths) as usize],
        None => panic!("the code knows nothing of {place}"),
        Some(Number(value)) => {
            let width = number(widths) as usize;
            let all = value.to_le_bytes();
            let (bytes, rest) = all.split_at(width);
            assert!(rest.iter().all(|byte| *byte == 0), "{place} is wider");
            bytes.to_vec()
        }
        Some(Bytes(bytes)) => {
            assert!(allows(widths, bytes.len()), "{place} has {}", bytes.len());
            bytes
        }
        Some(Items(items)) => {
            let width = widths
                .strip_suffix(" each")
                .unwrap_or_else(|| panic!("{place}"));
            let is_wide = |item: &Vec<u8>| item.len() as u64 == number(width);
            assert!(items.iter().all(is_wide), "{place}: {items:?}");
            items.concat()
        }
    }
}

/// Whether a field may have `length` bytes: `any`, `8`, `0 or 8`, `0, 1 or 2`.
fn allows(widths: &str, length: usize) -> bool {
    let listed = widths.replace(" or ", ", ");
    let is_width = |width: &str| number(width) == length as u64;
    widths == "any" || listed.split(", ").any(is_width)
}
