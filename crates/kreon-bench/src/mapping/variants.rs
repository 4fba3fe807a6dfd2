//! What is compared.

use kreon::{Eviction, KeepRecords, MappingModes, Writeback};

/// One way to go about it.
pub struct Variant {
    /// What differs from the default.
    pub name: &'static str,
    /// The way.
    pub modes: MappingModes,
}

fn variant(name: &'static str, change: impl FnOnce(&mut MappingModes)) -> Variant {
    let mut modes = MappingModes::default();
    change(&mut modes);
    Variant { name, modes }
}

/// Those that matter to gets.
pub fn reading() -> Vec<Variant> {
    vec![
        variant("default", |_| ()),
        variant("log pages, no records", |modes| {
            modes.records = KeepRecords::Never
        }),
        variant("fifo", |modes| modes.eviction = Eviction::Fifo),
        variant("fifo, no records", |modes| {
            modes.eviction = Eviction::Fifo;
            modes.records = KeepRecords::Never;
        }),
    ]
}

/// Those that matter to puts.
pub fn writing() -> Vec<Variant> {
    vec![
        variant("default: sorted and merged", |_| ()),
        variant("writeback sorted", |modes| {
            modes.writeback = Writeback::Sorted
        }),
        variant("writeback unsorted", |modes| {
            modes.writeback = Writeback::Unsorted
        }),
        variant("one transfer at a time", |modes| modes.depth_max = 1),
    ]
}
