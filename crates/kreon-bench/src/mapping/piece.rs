//! One measurement of the mapping: what is done, by which way, and what came of it.

use std::path::PathBuf;
use std::sync::Arc;

use kreon::{Backend, MapAdvice, MappingModes, Writeback};
use kreon_device::{Device, FileDevice, FileOptions};
use serde::{Deserialize, Serialize};

use super::inserts;
use super::ram::device::RamDevice;
use super::ram::pool::{Done, Pool};
use super::ram::{PAGES, Work, leaves, mapped, sparse};

/// A measurement, in a process of its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Piece {
    /// The table that it belongs to.
    pub table: String,
    /// Its row.
    pub row: String,
    /// The column: what is done.
    pub column: String,
    /// Threads that do it.
    pub threads: u64,
    /// What to do.
    pub task: PieceTask,
    /// Memory of the process, page cache included, if that is limited.
    pub limit_bytes: Option<u64>,
}

/// What to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PieceTask {
    /// The mapping of kreon works over the block device at a path, or a device in the memory of the process.
    Pool {
        /// What it does.
        work: Work,
        /// Where its device is.
        path: Option<PathBuf>,
        /// How it works.
        design: Design,
    },
    /// The kernel's mapping of a file works.
    Mapped {
        /// What it does.
        work: Work,
        /// The file.
        path: PathBuf,
        /// Whether the kernel has all its pages in memory.
        is_in_memory: bool,
    },
    /// Descents through a tree whose leaves do not fit.
    Leaves {
        /// Frames of the mapping.
        frames: u64,
        /// Whether eviction goes by priority.
        by_priority: bool,
        /// Whether a spill reads as many leaves meanwhile.
        spills: bool,
    },
    /// Writeback of one page in so many; by the kernel, or in one of the ways of the mapping.
    Sparse {
        /// One page in so many is dirty.
        spacing: u64,
        /// `None`: by the kernel.
        design: Option<Design>,
    },
    /// Inserts into a store with a checkpoint each second.
    Inserts {
        /// Whether pages are read through the kernel's mapping.
        is_mapped: bool,
        /// The store's memory.
        memory_bytes: u64,
        /// How long, at most.
        seconds: u64,
    },
}

/// A way in which the mapping of kreon works: the one that is shipped but for one thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Design {
    /// Nothing is different.
    Shipped,
    /// One lock for the state of all pages; as many free lists as before.
    OneShard,
    /// One list of free frames.
    OneList,
    /// So many pages are evicted for one that is wanted.
    EvictBatch(usize),
    /// Pages are read before they get new content.
    FreshReads,
    /// A transfer for each dirty page, in order.
    Sorted,
    /// The same in no order.
    Unsorted,
}

impl Design {
    fn modes(self) -> MappingModes {
        let mut modes = MappingModes::default();
        match self {
            Self::Shipped => {}
            Self::OneShard => {
                modes.shards = 1;
                modes.free_lists = 4 * kreon_device::processors();
            }
            Self::OneList => modes.free_lists = 1,
            Self::EvictBatch(pages) => modes.evict_batch_max = pages,
            Self::FreshReads => modes.fresh_reads = true,
            Self::Sorted => modes.writeback = Writeback::Sorted,
            Self::Unsorted => modes.writeback = Writeback::Unsorted,
        }
        modes
    }
}

/// What a measurement brought.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Measured {
    /// Which.
    pub piece: Piece,
    /// Operations that were measured.
    pub operations: u64,
    /// Operations a second, of all threads together.
    pub per_second: f64,
    /// CPU time of the process, in microseconds for each.
    pub cpu_us: f64,
    /// Further figures by name.
    pub more: Vec<(String, f64)>,
}

impl Piece {
    /// Does it. `dir` is a folder on the real device.
    ///
    /// # Errors
    /// If something fails, or holds what it should not.
    pub fn measure(&self, dir: &std::path::Path) -> anyhow::Result<Measured> {
        let mut more = Vec::new();
        let done = match &self.task {
            PieceTask::Pool { work, path, design } => {
                let pool = Pool::new(device(path.as_ref())?, *work, self.threads, design.modes())?;
                let before = pool.mapping.stats();
                let done = pool.run()?;
                let after = pool.mapping.stats();
                let each = |count: u64| count as f64 / done.count as f64;
                more.push((
                    "pages read".into(),
                    each(after.pages_read - before.pages_read),
                ));
                more.push(("writes".into(), each(after.writes - before.writes)));
                done
            }
            PieceTask::Mapped {
                work,
                path,
                is_in_memory,
            } => mapped::run(path, *work, self.threads, *is_in_memory)?,
            PieceTask::Leaves {
                frames,
                by_priority,
                spills,
            } => {
                let (done, read) = leaves::run(*frames, *by_priority, *spills)?;
                more.push(("pages read".into(), read));
                done
            }
            PieceTask::Sparse { spacing, design } => match design {
                None => sparse::mapped(dir, *spacing)?,
                Some(design) => {
                    let (done, writes) = sparse::pool(dir, *spacing, design.modes().writeback)?;
                    more.push(("writes".into(), writes as f64 / done.count as f64));
                    done
                }
            },
            PieceTask::Inserts {
                is_mapped,
                memory_bytes,
                seconds,
            } => {
                let mut modes = MappingModes::default();
                if *is_mapped {
                    modes.backend = Backend::Mmap(MapAdvice::Random);
                }
                let (done, figures) =
                    inserts::run(dir, *memory_bytes, modes, *seconds, self.threads)?;
                more = figures;
                done
            }
        };
        Ok(self.measured(&done, more))
    }

    fn measured(&self, done: &Done, more: Vec<(String, f64)>) -> Measured {
        let count = done.count as f64;
        Measured {
            piece: self.clone(),
            operations: done.count,
            per_second: count / done.taken.seconds,
            cpu_us: done.taken.cpu_seconds * 1e6 / count,
            more,
        }
    }
}

fn device(path: Option<&PathBuf>) -> anyhow::Result<Arc<dyn Device>> {
    Ok(match path {
        Some(path) => Arc::new(FileDevice::open(path, &FileOptions::default())?.0),
        None => Arc::new(RamDevice::new(PAGES)),
    })
}
