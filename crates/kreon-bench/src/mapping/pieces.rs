//! Which pieces answer which question.

use std::path::Path;

use super::piece::{Design, Piece, PieceTask};
use super::ram::{EVICTING_BYTES, Work, sparse};
use super::settings::{Ablation, Settings};

/// What the system needs beside the pages of a mapping: page tables and the process.
const BESIDE_BYTES: u64 = 8 << 20;

/// Memory of the store of inserts, and of its process.
const INSERT_MEMORY_BYTES: u64 = 4 << 30;

/// How long inserts go on.
const INSERT_SECONDS: u64 = 6;

/// Misses and new content over a device in DRAM: by the mapping over memory of the process and over a block device, and by
/// the kernel's mapping of a file in memory and of that block device.
pub fn ram(threads: u64, disk: Option<&Path>, file: Option<&Path>) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut add = |row: &str, work: Work, task, limit_bytes| {
        pieces.push(Piece {
            table: "over a device in DRAM".into(),
            row: row.into(),
            column: work.name().into(),
            threads,
            task,
            limit_bytes,
        });
    };
    for work in [
        Work::Hit,
        Work::Miss,
        Work::MissEvict,
        Work::Fresh,
        Work::FreshEvict,
    ] {
        let pool = |path: Option<&Path>| PieceTask::Pool {
            work,
            path: path.map(Path::to_owned),
            design: Design::Shipped,
        };
        add("pool, copies in the process", work, pool(None), None);
        if work == Work::Hit {
            continue;
        }
        let mapped = |path: &Path, is_in_memory| PieceTask::Mapped {
            work,
            path: path.to_owned(),
            is_in_memory,
        };
        let evicts = matches!(work, Work::MissEvict | Work::FreshEvict);
        if let Some(path) = disk {
            add("pool, block device", work, pool(disk), None);
            let limit = evicts.then_some(EVICTING_BYTES + BESIDE_BYTES);
            add("mmap, block device", work, mapped(path, false), limit);
        }
        if let Some(path) = file.filter(|_| !evicts) {
            add(
                "mmap, tmpfs (nothing is read)",
                work,
                mapped(path, true),
                None,
            );
        }
    }
    pieces
}

/// Inserts beside checkpoints.
pub fn inserts(settings: &Settings) -> Vec<Piece> {
    [("pool", false), ("mmap, random", true)]
        .into_iter()
        .map(|(row, is_mapped)| Piece {
            table: "inserts of 1000 B, a checkpoint each second, everything in memory".into(),
            row: row.into(),
            column: "insert".into(),
            threads: settings.threads_max(),
            task: PieceTask::Inserts {
                is_mapped,
                memory_bytes: INSERT_MEMORY_BYTES,
                seconds: INSERT_SECONDS,
            },
            limit_bytes: Some(INSERT_MEMORY_BYTES + INSERT_MEMORY_BYTES / 4),
        })
        .collect()
}

/// The pieces of an ablation.
pub fn ablation(ablation: Ablation, threads: u64) -> Vec<Piece> {
    let designs = |works: &[Work], designs: &[(&str, Design)]| -> Vec<Piece> {
        let pairs = works
            .iter()
            .flat_map(|work| designs.iter().map(move |d| (*work, d)));
        let pieces = pairs.map(|(work, (row, design))| Piece {
            table: ablation.name().into(),
            row: (*row).into(),
            column: work.name().into(),
            threads,
            task: PieceTask::Pool {
                work,
                path: None,
                design: *design,
            },
            limit_bytes: None,
        });
        pieces.collect()
    };
    let shipped = ("shipped", Design::Shipped);
    match ablation {
        Ablation::Shards => designs(
            &[Work::Miss, Work::MissEvict, Work::Fresh],
            &[shipped, ("one shard", Design::OneShard)],
        ),
        Ablation::Lists => designs(
            &[Work::Miss, Work::MissEvict, Work::Fresh],
            &[shipped, ("one list", Design::OneList)],
        ),
        Ablation::EvictBatch => designs(
            &[Work::MissEvict],
            &[
                ("64 (shipped)", Design::Shipped),
                ("1", Design::EvictBatch(1)),
                ("512", Design::EvictBatch(512)),
            ],
        ),
        Ablation::FreshReads => designs(
            &[Work::Fresh, Work::FreshEvict],
            &[shipped, ("read first", Design::FreshReads)],
        ),
        Ablation::Writeback => writeback(),
        Ablation::Priorities => priorities(),
    }
}

fn writeback() -> Vec<Piece> {
    let ways = [
        ("merged (shipped)", Some(Design::Shipped)),
        ("sorted", Some(Design::Sorted)),
        ("unsorted", Some(Design::Unsorted)),
        ("mmap and fdatasync", None),
    ];
    let spacings = [1, 2, 8, sparse::SPACING_MAX];
    let pairs = spacings
        .iter()
        .flat_map(|spacing| ways.map(|way| (*spacing, way)));
    pairs
        .map(|(spacing, (row, design))| Piece {
            table: Ablation::Writeback.name().into(),
            row: row.into(),
            column: format!("1 page in {spacing} dirty"),
            threads: 1,
            task: PieceTask::Sparse { spacing, design },
            limit_bytes: None,
        })
        .collect()
}

fn priorities() -> Vec<Piece> {
    let mut pieces = Vec::new();
    for spills in [false, true] {
        for frames in [1280, 2048, 4096] {
            for (row, by_priority) in [("by priority (shipped)", true), ("oldest first", false)] {
                pieces.push(Piece {
                    table: Ablation::Priorities.name().into(),
                    row: row.into(),
                    column: match spills {
                        false => format!("get, {frames} frames"),
                        true => format!("get beside a spill, {frames} frames"),
                    },
                    threads: 1,
                    task: PieceTask::Leaves {
                        frames,
                        by_priority,
                        spills,
                    },
                    limit_bytes: None,
                });
            }
        }
    }
    pieces
}
