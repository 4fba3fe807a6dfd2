//! What is compared.

use kreon::{Backend, Eviction, KeepRecords, MapAdvice, MappingModes, Writeback};

/// One way to go about it.
pub struct Variant {
    /// What differs from the default.
    pub name: &'static str,
    /// The way.
    pub modes: MappingModes,
    /// Whether there is io_uring.
    pub ring: bool,
}

fn variant(name: &'static str, change: impl FnOnce(&mut MappingModes)) -> Variant {
    let mut modes = MappingModes::default();
    change(&mut modes);
    Variant {
        name,
        modes,
        ring: true,
    }
}

fn mmap(name: &'static str, advice: MapAdvice) -> Variant {
    variant(name, |modes| modes.backend = Backend::Mmap(advice))
}

/// All.
pub fn variants() -> Vec<Variant> {
    vec![
        variant("pool", |_| ()),
        variant("pool, no single records", |modes| {
            modes.records = KeepRecords::Never
        }),
        variant("pool, fifo, no single records", |modes| {
            modes.eviction = Eviction::Fifo;
            modes.records = KeepRecords::Never;
        }),
        variant("pool, one transfer at a time", |modes| modes.depth_max = 1),
        Variant {
            ring: false,
            ..variant("pool, no io_uring", |_| ())
        },
        variant("pool, writeback sorted", |modes| {
            modes.writeback = Writeback::Sorted
        }),
        variant("pool, writeback unsorted", |modes| {
            modes.writeback = Writeback::Unsorted
        }),
        mmap("mmap, random", MapAdvice::Random),
        mmap("mmap, willneed", MapAdvice::WillNeed),
        mmap("mmap, normal", MapAdvice::Normal),
        mmap("mmap, sequential", MapAdvice::Sequential),
    ]
}
