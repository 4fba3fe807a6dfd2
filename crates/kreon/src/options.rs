//! Settings of a store.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use kreon_device::{Device, Facility, FileOptions};
use kreon_engine::Engine;

use crate::{Durability, Result, Store};

/// Settings of a store, made by [`Store::options`] and ended by [`open`](Self::open).
///
/// ```
/// # fn main() -> kreon::Result<()> {
/// # let folder = tempfile::tempdir().unwrap();
/// let store = kreon::Store::options()
///     .memory_bytes(64 << 20)
///     .durability(kreon::Durability::Sync)
///     .open(folder.path().join("small.kreon"))?;
/// # store.close()?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
#[must_use = "settings do nothing until `open`"]
pub struct Options {
    pub(crate) engine: kreon_engine::Options,
    pub(crate) durability: Durability,
    direct_io_off: bool,
    io_uring_off: bool,
}

impl Options {
    /// Memory of the store, in bytes: page frames, both L0s, log buffers and tables. It is all taken at
    /// open. At least 8 MiB; default 256 MiB.
    pub fn memory_bytes(mut self, bytes: usize) -> Self {
        self.engine.memory_bytes = bytes;
        self
    }

    /// Durability of `put` and `delete`. Default [`Durability::Buffered`].
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// Whether a store that does not exist is made. Default yes; if not, opening it is `NotFound`.
    pub fn create(mut self, create: bool) -> Self {
        self.engine.create = create;
        self
    }

    /// Whether a new store may be made over a file or block device that is not empty: everything in it is lost. Default no:
    /// then only what is new or has no bytes is formatted, and a creation that a crash cut short is ended.
    ///
    /// A regular file that was made longer beforehand, be it with zeroes only, and every block device are not empty. A
    /// store that can be opened is opened and keeps its data; so is one that has a whole superblock and is damaged
    /// elsewhere, which fails with `Corruption`, and one of a newer format, which is refused: remove the file, or wipe the
    /// start of the device, to begin anew there. All else is overwritten, traces of a damaged store included, from which
    /// [`Repair`](crate::Repair) might have salvaged something; the space of a file is given back first. Without
    /// [`create`](Self::create) this does nothing.
    pub fn format(mut self, format: bool) -> Self {
        self.engine.format = format;
        self
    }

    /// The volume never grows beyond this, in bytes. A full volume refuses puts with `OutOfSpace`, but
    /// takes deletions. Default 16 TiB.
    pub fn volume_bytes_max(mut self, bytes: u64) -> Self {
        self.engine.volume_bytes_max = bytes;
        self
    }

    /// Size at which the in-memory level is spilled, in bytes. 1 byte to 16 GiB, default an eighth of the memory. More
    /// means fewer bytes written to the device and a longer replay after a crash.
    pub fn l0_bytes(mut self, bytes: usize) -> Self {
        self.engine.l0_bytes = Some(bytes);
        self
    }

    /// How often the in-memory level is checkpointed, so that an opening after a crash need not replay the log
    /// further back: its entries that are new since the last time go to the device as an index, if the log has
    /// grown by 64 MiB since then. `None`: never, and a replay goes back to the last spill. Default two minutes.
    ///
    /// It costs no writer anything but a moment of quiet, and about as many bytes as the keys that were written
    /// and 24 more each; a key that is written again in every interval is written as often. An opening loads
    /// it at some millions of entries a second.
    pub fn l0_checkpoint_interval(mut self, interval: impl Into<Option<Duration>>) -> Self {
        self.engine.l0_checkpoint_interval = interval.into();
        self
    }

    /// Values up to this length are kept in the leaves of the index, longer ones only in the log: 0 to
    /// 256 bytes, default 64.
    pub fn inline_value_bytes_max(mut self, bytes: usize) -> Self {
        self.engine.inline_value_bytes_max = bytes;
        self
    }

    /// Space on the volume for each byte of live data that overwriting and deleting are to lead to: 1.05 to 10, default 1.3.
    /// It is the goal; [`write_amplification_max`](Self::write_amplification_max) is the most that it may cost, and with the
    /// default of that a store of pairs of 1 KiB takes about 1.65. Less space costs more writes: records are moved out of
    /// segments of the log that have fewer dead bytes. Writers are slowed down so that the space stays within a few
    /// percent of the plan, which `Stats` tells. Not counted are what open snapshots keep and about 25 MB that are there
    /// however few the data. An opening with a value out of range fails with `InvalidArgument`.
    pub fn space_amplification(mut self, target: f64) -> Self {
        self.engine.space_amplification = target;
        self
    }

    /// How many bytes, about, may be written in the long run for each byte that overwrites another, values and index
    /// together: 2 to 100, default 3. Where [`space_amplification`](Self::space_amplification) would cost more, the store
    /// takes as much more space as that needs. With pairs of 1 KiB 1.3 costs about 9, 1.5 about 4, and 1.65 about 3. Values in
    /// leaves are written with the index: they take about 3 times their size at a cost of 3.
    ///
    /// Where the goal costs too much, the log of few data may also hold dead bytes for four times the size of the index
    /// between two spills (at the default; by its square less above), no more than an in-memory level has and no more than
    /// 128 MiB: the index would be written anew all the time. At 16 and more 1.3 is reached by all but the smallest
    /// stores. An opening with a value out of range fails with `InvalidArgument`.
    pub fn write_amplification_max(mut self, most: f64) -> Self {
        self.engine.write_amplification_max = most;
        self
    }

    /// Whether values that scans read again and again are laid together, so that later scans read them at once. It costs
    /// writes of its own, about as many bytes as those scans read, and space for a while:
    /// see [`scan_space_amplification`](Self::scan_space_amplification). Default yes.
    pub fn scan_reorganisation(mut self, on: bool) -> Self {
        self.engine.scan_reorganisation = on;
        self
    }

    /// Space on the volume for each byte of live data that may be taken while values are laid together for scans: 1 to 10,
    /// default 2.1. Their old places are free later than the copies are made: with less than about twice the data they are laid
    /// together in part, with no more than [`space_amplification`](Self::space_amplification) hardly at all. The space comes back
    /// within a minute or so after such scans have ended, and an eighth of what the store takes stays free on the file system.
    pub fn scan_space_amplification(mut self, most: f64) -> Self {
        self.engine.scan_space_amplification = most;
        self
    }

    /// How much the log may hide between two spills however little data there is. For tests with little data.
    #[doc(hidden)]
    pub fn unspilled_bytes_min(mut self, bytes: u64) -> Self {
        self.engine.unspilled_bytes_min = bytes;
        self
    }

    /// Whether the operating system's page cache is passed by (`O_DIRECT`) where it can be. Default
    /// yes.
    pub fn direct_io(mut self, direct: bool) -> Self {
        self.direct_io_off = !direct;
        self
    }

    /// Whether io_uring is used where the kernel allows it. Default yes.
    pub fn io_uring(mut self, ring: bool) -> Self {
        self.io_uring_off = !ring;
        self
    }

    /// Bits a key of the filters that keep gets from reading leaves that lack their key. Default 10: of a
    /// hundred such leaves about one is read all the same. The filters take about 4 % of the leaves' size in
    /// index nodes. 0: what is written from now on has none; at most 24.
    pub fn filter_bits_per_key(mut self, bits: usize) -> Self {
        self.engine.filter_bits_per_key = bits;
        self
    }

    /// How the mapping of pages goes about its work: for experiments that compare.
    #[doc(hidden)]
    pub fn mapping_modes(mut self, modes: kreon_engine::MappingModes) -> Self {
        self.engine.mapping = modes;
        self
    }

    /// Threads that merge when data goes from memory to the device, by ranges of keys. Default 0: a quarter
    /// of the processors, at least one, so that writers keep most of them.
    pub fn spill_threads(mut self, threads: usize) -> Self {
        self.engine.spill_threads = threads;
        self
    }

    /// How many times larger than the level above it a level of a region may become: 2 to 100, default 8. `None`:
    /// regions have one level, whatever their size.
    ///
    /// A region starts with one level and gets more as it grows. Less means fewer bytes written, more means fewer
    /// trees for a get of a key that is not there, or that lies in the lowest one.
    pub fn growth_factor(mut self, factor: impl Into<Option<u32>>) -> Self {
        self.engine.growth_factor = factor.into();
        self
    }

    /// Whether a spill writes the whole first level anew, as other stores do, instead of only the leaves that
    /// receive entries. For comparison. Default no.
    pub fn full_compaction(mut self, full: bool) -> Self {
        self.engine.full_compaction = full;
        self
    }

    /// Does background work in the calling thread, so that every run takes the same course. For tests.
    #[doc(hidden)]
    pub fn background_inline(mut self) -> Self {
        self.engine.background = kreon_engine::Background::Inline;
        self
    }

    /// Opens the store at `path`, a file or raw block device, or makes it. What is not empty and not a store is left
    /// untouched, unless [`format`](Self::format) says otherwise.
    ///
    /// After a crash this replays the log behind the last checkpoint: about a second a gigabyte.
    ///
    /// # Errors
    /// `NotFound`: no such folder, or no store and `create(false)`. `Busy`: open elsewhere.
    /// `InvalidArgument`: a directory, something that is not a Kreon store and not empty, a newer format, or settings
    /// out of range. `Corruption`: what the store needs to open does not verify, or there are traces of a store without
    /// a superblock. `OutOfSpace`, `Io`.
    pub fn open(self, path: impl AsRef<Path>) -> Result<Store> {
        let file = FileOptions {
            create: self.engine.create,
            direct: facility(self.direct_io_off || reads_through_page_cache(&self.engine.mapping)),
            ring: facility(self.io_uring_off),
            ..FileOptions::default()
        };
        Store::open_with(path.as_ref(), file, self)
    }

    /// Opens the store on a device of the caller's own, which may watch the transfers or disturb them. For tools that
    /// measure and test: `Device` is no part of this crate's promises.
    ///
    /// # Errors
    /// See [`open`](Self::open).
    #[doc(hidden)]
    pub fn open_on(self, device: Arc<dyn Device>) -> Result<Store> {
        Ok(Store {
            engine: Arc::new(Engine::open(device, self.engine)?),
            durability: self.durability,
        })
    }
}

/// What the kernel maps is its page cache: writes must go through it, too.
fn reads_through_page_cache(modes: &kreon_engine::MappingModes) -> bool {
    modes.backend != kreon_engine::Backend::Pool
}

fn facility(is_off: bool) -> Facility {
    match is_off {
        true => Facility::Off,
        false => Facility::Auto,
    }
}
