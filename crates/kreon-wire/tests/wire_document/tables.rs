//! Kinds, roles, limits, classes of violations, and the pictures.

use kreon_wire::limits::*;
use kreon_wire::*;

use crate::document::{draw, number};
use crate::wire;

macro_rules! by_name {
    ($($name:ident),+ $(,)?) => { [$((stringify!($name), $name as u64)),+] };
}

#[test]
fn limits_are_those_of_the_code() {
    let constants = by_name![
        WIRE_VERSION,
        NODE_VERSION,
        HEADER_BYTES,
        UNPROVEN_BYTES_MAX,
        STREAM_DATA_BYTES_MAX,
        STREAM_BYTES_MAX,
        CONTROL_BYTES_MAX,
        REQUEST_BYTES_MAX,
        BLOCK_BYTES,
        NODE_BYTES_MAX,
        MEMBERS_MAX,
        SPLIT_KEY_BYTES_MAX,
        TEXT_BYTES_MAX,
        CLUSTER_NAME_BYTES_MAX,
        VOLUME_BYTES_MAX,
        VALUE_BYTES_MAX,
        TABLES_MAX,
        SPLITS_MAX,
        PAGE_ENTRIES_MAX,
        DIGESTS_MAX,
        FAILURE_TEXT_BYTES_MAX,
    ];
    let document = wire();
    let told = document.numbers("Limits", "name", "value");
    assert_eq!(told, constants.into());
}

fn told(presence: Presence) -> &'static str {
    match presence {
        Presence::None => "never",
        Presence::Some => "always",
        Presence::Any => "maybe",
    }
}

#[test]
fn kinds_are_those_of_the_code() {
    let document = wire();
    let rows = &document.at("Kinds").rows;
    assert_eq!(rows.len(), Kind::ALL.len());
    for (row, kind) in rows.iter().zip(Kind::ALL) {
        let shape = kind.shape();
        assert_eq!(row["kind"], format!("{kind:?}"));
        assert_eq!(number(&row["code"]), kind as u64, "{kind:?}");
        let lengths = [&row["least"], &row["most"]].map(|cell| number(cell));
        let expected = [shape.body_bytes_min, shape.body_bytes_max].map(u64::from);
        assert_eq!(lengths, expected, "{kind:?}");
        let fields = [&row["group"], &row["term"], &row["number"]];
        let expected = [shape.group, shape.term, shape.number].map(told);
        assert_eq!(fields.map(String::as_str), expected, "{kind:?}");
    }
}

#[test]
fn links_carry_what_the_code_allows() {
    let document = wire();
    let rows = &document.at("Links").rows;
    assert_eq!(rows.len(), Role::ALL.len());
    for (row, role) in rows.iter().zip(Role::ALL) {
        let allowed = Kind::ALL.into_iter().filter(|kind| role.allows(*kind));
        let names: Vec<_> = allowed.map(|kind| format!("{kind:?}")).collect();
        assert_eq!(row["kinds"], names.join(", "), "{role:?}");
        let limit = u64::from(role.body_bytes_max());
        assert_eq!(number(&row["body bytes"]), limit, "{role:?}");
    }
}

#[test]
fn classes_of_violations_are_those_of_the_code() {
    let document = wire();
    let rows = document.at("Violations").rows.iter();
    let told: Vec<_> = rows
        .map(|row| (row["class"].as_str(), format!("{}.", row["what is wrong"])))
        .collect();
    let classes = Violation::ALL.map(|class| (class.name(), class.told().to_owned()));
    assert_eq!(told, classes);
}

#[test]
fn every_structure_of_fixed_fields_is_drawn_as_its_table_says() {
    let document = wire();
    let mut count = 0;
    for (heading, section) in &document.sections {
        if section.has_offsets() {
            let (told, drawn) = (section.picture.join("\n"), draw(section).join("\n"));
            assert_eq!(
                told, drawn,
                "the picture of {heading:?} should be\n{drawn}\n"
            );
            count += 1;
        }
    }
    assert!(count >= 38, "{count} pictures");
}
