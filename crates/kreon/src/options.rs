//! Settings of a store.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use kreon_device::{Device, Facility, FileDevice, FileOptions};
use kreon_engine::{Engine, Event, Events, Mirroring};

use crate::cluster;
use crate::{Durability, Error, Result, Store};

/// Settings of a store, made by [`Store::options`] and used by [`open`](Self::open). They hold for one opening; the
/// store does not record them. A value out of its range fails the opening with `InvalidArgument`, unless
/// the option says otherwise.
///
/// The defaults suit most programs; [`memory_bytes`](Self::memory_bytes) and [`durability`](Self::durability) have the
/// largest effect. `docs/tuning.md` in the repository has measurements and a list of symptoms.
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
    status: bool,
}

impl Options {
    /// Memory budget of the store in bytes: page frames and their table, two in-memory levels (L0), log buffers,
    /// buffers of garbage collection and scans. 8 MiB or more; default 256 MiB.
    ///
    /// More memory means fewer reads from the device and, as [`l0_bytes`](Self::l0_bytes) follows it, fewer bytes
    /// written by spills. The opening allocates and touches the page frames, most of the budget, so its time grows with
    /// the budget. It fails if the machine, the control group or `RLIMIT_AS` does not allow as much. Set this to what
    /// the process can spare before changing anything else.
    pub fn memory_bytes(mut self, bytes: usize) -> Self {
        self.engine.memory_bytes = bytes;
        self
    }

    /// What `put`, `delete` and `delete_range` promise when they return, unless a call names its own durability.
    /// Default [`Durability::Buffered`], which may lose the last writes in a crash.
    ///
    /// [`Durability::Sync`] loses none, but each write waits for a flush of the device. Waiting writers share flushes,
    /// so its throughput grows with the number of threads or of futures in flight.
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// Whether [`open`](Self::open) creates a store where there is none. Default `true`; with `false` such an opening
    /// fails with `NotFound`, which catches a mistyped path.
    pub fn create(mut self, create: bool) -> Self {
        self.engine.create = create;
        self
    }

    /// Whether [`open`](Self::open) may create a store over a file or block device that is not empty. This destroys its
    /// content. Default `false`: only a missing or empty file is formatted, and a creation that a crash interrupted is
    /// completed. Set it once, for a new block device or a preallocated file. Without [`create`](Self::create) it has
    /// no effect.
    ///
    /// A block device and a regular file with a length above 0 count as not empty, even if they hold only zeroes. An
    /// existing store is never overwritten if it has a valid superblock: it is opened, or the opening fails with
    /// `Corruption` if the store is damaged elsewhere, or with `InvalidArgument` if its format is newer. To start anew
    /// there, remove the file or wipe the start of the device. All other content is overwritten, including the remains
    /// of a damaged store without a superblock that [`Repair`](crate::Repair) might have salvaged. The space of a file
    /// is released first.
    pub fn format(mut self, format: bool) -> Self {
        self.engine.format = format;
        self
    }

    /// Whether the store is only read. Default `false`. Any number of processes may have a store open for reading, and
    /// none for writing meanwhile: an opening is `Busy` for whoever comes second.
    ///
    /// Not one byte is written: the file is opened with `O_RDONLY`, so it may lie on a medium or a mount that is
    /// read-only, and file permissions to read it suffice. What the log has behind the last spill is replayed into
    /// memory, at each opening anew. Gets, scans, snapshots, figures, verification and transactions that write nothing
    /// work as ever; all that would write fails with [`ReadOnly`](crate::ErrorKind::ReadOnly), as do
    /// [backups](crate::Backup), and a [`sync`](Store::sync) has nothing to do. No background work runs.
    ///
    /// A store is never created: [`create`](Self::create) and [`format`](Self::format) have no effect, and an opening
    /// fails with `NotFound` where there is none. What is replayed must fit in [`memory_bytes`](Self::memory_bytes), all
    /// of which is for that and for frames; if it does not, the opening fails with `InvalidArgument`, and the error tells
    /// how much would do. A budget as large as the writer's always does. See also
    /// [`replay_bytes_max`](Self::replay_bytes_max).
    pub fn read_only(mut self, read_only: bool) -> Self {
        self.engine.read_only = read_only;
        self
    }

    /// With [`read_only`](Self::read_only): most bytes of memory for what is replayed, beyond the budget if it must be:
    /// frames keep the share that they have in a store that is written. Default `None`: what the budget leaves.
    pub fn replay_bytes_max(mut self, bytes: impl Into<Option<usize>>) -> Self {
        self.engine.replay_bytes_max = bytes.into();
        self
    }

    /// Largest size of the volume in bytes, rounded down to whole segments of 2 MiB: up to 256 TiB, default 16 TiB.
    ///
    /// A full volume refuses puts with `OutOfSpace`; reads and deletions go on. The store reserves address space (not
    /// memory) in proportion to this limit, 16 GiB at the default: lower it under `RLIMIT_AS`, or if other programs
    /// share the file system. The value is not checked against an existing volume: do not set it below the present
    /// size.
    pub fn volume_bytes_max(mut self, bytes: u64) -> Self {
        self.engine.volume_bytes_max = bytes;
        self
    }

    /// Size in bytes at which the in-memory level (L0, the memtable) is spilled: 1 byte to 16 GiB. Default: an eighth
    /// of [`memory_bytes`](Self::memory_bytes), at most 16 GiB. The budget contains it twice, for the level that is
    /// written and the one that is spilled, and must leave at least 512 KiB for frames.
    ///
    /// A larger L0 merges more entries into each rewritten leaf, so spills write fewer bytes; there are fewer frames,
    /// and a crash leaves more log to replay. The sizes of all levels are multiples of it. Raise it for loads and
    /// scattered overwrites of small pairs.
    pub fn l0_bytes(mut self, bytes: usize) -> Self {
        self.engine.l0_bytes = Some(bytes);
        self
    }

    /// Interval between images of the in-memory level (L0). An image is a durable index of the entries that are new
    /// since the last image; an opening after a crash loads it and replays only the log behind it. Default 120 s;
    /// intervals below 0.1 s count as 0.1 s. `None`: no images, and an opening replays the log from the last spill on.
    ///
    /// An image is written only if the log has grown by 64 MiB since the last one, and images take at most half of the
    /// time. It contains each key written since then, plus 24 bytes a key, so a key that is overwritten in every
    /// interval is written in every image. An opening loads some millions of entries a second.
    ///
    /// A shorter interval shortens the replay and costs write throughput: a load of 6 GiB ran at 674 to 819 k puts/s
    /// with an image every 1 to 8 s and at 965 k puts/s without images. Shorten it if an opening must be fast; use
    /// `None` for data that can be loaded again. [`Store::checkpoint_l0`] writes an image at once.
    pub fn l0_checkpoint_interval(mut self, interval: impl Into<Option<Duration>>) -> Self {
        self.engine.l0_checkpoint_interval = interval.into();
        self
    }

    /// Largest value in bytes that is stored in the leaves of the index; longer values stay in the log. 0 to 256,
    /// default 64.
    ///
    /// A get reads an inline value with its leaf: one device read instead of two, and a scan needs no read for the
    /// value. In exchange the value takes space in L0 and in leaves and is written again by each spill and merge of its
    /// leaf; at a [`write_amplification_max`](Self::write_amplification_max) of 3 inline values take about 3 times
    /// their size. Raise it for small values that are scanned or read from the device; lower it for values that are
    /// often overwritten and seldom read. Values of keys over 1 KiB are never inline. A change applies to later writes.
    pub fn inline_value_bytes_max(mut self, bytes: usize) -> Self {
        self.engine.inline_value_bytes_max = bytes;
        self
    }

    /// Target of garbage collection: bytes on the volume for each live byte. 1.05 to 10, default 2.
    ///
    /// Overwritten data of some hundred MB and more takes no more than this; tight targets are exceeded by a few percent
    /// just before a spill ends. [`write_amplification_max`](Self::write_amplification_max) limits what reaching the
    /// target may cost and wins over it: at its default of 3 the least is about 1.6 with pairs of 1 KiB, and more with
    /// shorter pairs, whose index is a larger share of them; targets below that change nothing. With a lower target
    /// collection moves more live records and writers are throttled (`collection.space_planned` in [`Store::stats`]); a
    /// higher one gives write throughput. To get less space lower it, then raise `write_amplification_max`. Data kept
    /// for open snapshots is not counted, nor are about 25 MB that every store takes.
    pub fn space_amplification(mut self, target: f64) -> Self {
        self.engine.space_amplification = target;
        self
    }

    /// Most bytes written in the long run, by values and index together, for each byte that overwrites another. About 2
    /// to 100, default 3.
    ///
    /// If [`space_amplification`](Self::space_amplification) would cost more than this, the store takes more space
    /// instead. With 1 KiB pairs a space of 1.3 costs about 7.5, 1.5 about 3.5, 1.65 about 2.6. A higher limit therefore
    /// means less space and slower overwrites; at 16 and more, all but the smallest stores reach 1.3. Raise it where
    /// space is scarce; nothing changes for data that is not overwritten. Inline values are written with the index: at
    /// 3 they take about 3 times their size.
    ///
    /// In a small store the limit also spaces out spills, as each would write most of the index anew: between two
    /// spills the log may hold dead bytes of up to four times the size of the index, at most the size of L0 and 128
    /// MiB. Above the default this allowance falls by the square of the limit.
    pub fn write_amplification_max(mut self, most: f64) -> Self {
        self.engine.write_amplification_max = most;
        self
    }

    /// Whether values that scans repeatedly read one by one are copied together in key order, so that later scans read
    /// them in long runs (`Kreon 3.2.3`). Default `true`.
    ///
    /// The copies cost about as many bytes written as those scans read, slow the scans down meanwhile, and take space
    /// up to [`scan_space_amplification`](Self::scan_space_amplification). Gets never trigger them. Turn it off if
    /// ranges are scanned once only, or if space is short. Off, it also turns
    /// [`idle_reorganisation`](Self::idle_reorganisation) off.
    pub fn scan_reorganisation(mut self, on: bool) -> Self {
        self.engine.scan_reorganisation = on;
        self
    }

    /// Whether values are copied into key order while nobody writes, before any scan has asked for it: as the
    /// compactions of an LSM-tree sort what was loaded. Default `true`.
    ///
    /// A pass over all keys begins when no write came for 300 ms, spills and merges are done, and at least a sixteenth of
    /// the live data is new. It copies each value once at most, and only as far as all that was written stays below 2.2
    /// bytes for each byte given: stores that are overwritten all the time are left as they are. A write stops it within
    /// one round of 2 MiB. While others read it takes a third of the time. It needs space up to
    /// [`scan_space_amplification`](Self::scan_space_amplification), which is free again when it ends, and does nothing
    /// where everything fits in memory. Turn it off if the data is never scanned, or if wear matters more.
    pub fn idle_reorganisation(mut self, on: bool) -> Self {
        self.engine.idle_reorganisation = on;
        self
    }

    /// Whether records are verified whenever they are read. Default `false`: the checksum of a record is verified when its
    /// bytes come from the device; later reads of it in memory compare region, lengths and key only, as do reads of
    /// records that were in memory since they were written. So damage in memory of a value is not detected before the
    /// value is read from the device again, or moved. Costs a checksum over each value read.
    pub fn verify_every_read(mut self, on: bool) -> Self {
        self.engine.verify_every_read = on;
        self
    }

    /// Most bytes on the volume for each live byte while [`scan_reorganisation`](Self::scan_reorganisation) copies
    /// values: 1 to 10, default 2.1. A value below [`space_amplification`](Self::space_amplification) counts as that.
    ///
    /// The copies exist before the segments with the old records are free. Below about 2 only a part of the data is
    /// copied, near `space_amplification` hardly any. The space is free again within about a minute after such scans
    /// have ended. Nothing is copied unless an eighth of the store's size remains free on the volume and its file
    /// system.
    pub fn scan_space_amplification(mut self, most: f64) -> Self {
        self.engine.scan_space_amplification = most;
        self
    }

    /// Dead bytes that the log may always hold between two spills, however small the store is. For tests with little
    /// data.
    #[doc(hidden)]
    pub fn unspilled_bytes_min(mut self, bytes: u64) -> Self {
        self.engine.unspilled_bytes_min = bytes;
        self
    }

    /// Whether transfers bypass the page cache of the kernel (`O_DIRECT`). Default `true`; where the file system cannot
    /// do it, the page cache is used without an error.
    ///
    /// Without direct I/O the kernel keeps a second copy of the data in memory outside the budget. Turn it off to
    /// compare, or to avoid a defect of the file system.
    pub fn direct_io(mut self, direct: bool) -> Self {
        self.direct_io_off = !direct;
        self
    }

    /// Whether transfers are submitted through io_uring. Default `true`; where the kernel does not allow it, system
    /// calls are used without an error.
    ///
    /// Without io_uring the transfers of one call run one after the other, and a
    /// [`get_async`](crate::Region::get_async) that misses memory reads inside its poll. Turn it off to compare, or to
    /// avoid a defect of the kernel.
    pub fn io_uring(mut self, ring: bool) -> Self {
        self.io_uring_off = !ring;
        self
    }

    /// Whether other processes can ask for the figures of the store while it is open for writing:
    /// [`StoreStatus`](crate::StoreStatus), and `kreon stats` of the command. Default `false`: no socket, no thread.
    ///
    /// One thread answers on a Unix socket whose name lies outside the file system (an abstract one, of the network
    /// namespace). It makes no call of the store slower, and leaves nothing behind when the process is killed. Only
    /// processes of the same user and of root get an answer. Where it cannot be had, on other systems than Linux for one,
    /// the store opens without it and says so through `tracing`.
    pub fn status(mut self, status: bool) -> Self {
        self.status = status;
        self
    }

    /// Size of the Bloom filter of each leaf, in bits for each key of the leaf: 0 to 24, default 10. 0: leaves have no
    /// filter.
    ///
    /// A get asks the filter before it reads a leaf. At 10 bits less than 1 % of the leaves without the key are read
    /// all the same, and filters take about 4 % of the size of the leaves, in index nodes. More bits mean fewer
    /// needless reads and a larger index. One filter has at most 4064 bits, so leaves with more keys get fewer bits a
    /// key: at 24 bits those with more than 169 keys. Use 0 if all regions have one level and gets ask only for
    /// existing keys. The setting applies to leaves written from then on; [`Region::compact`](crate::Region::compact)
    /// rewrites all leaves.
    pub fn filter_bits_per_key(mut self, bits: usize) -> Self {
        self.engine.filter_bits_per_key = bits;
        self
    }

    /// Threads that merge one spill, by ranges of keys: 0 to 64, larger numbers count as 64. Default 0: a quarter of
    /// the processors, at least one.
    ///
    /// More threads shorten a spill, so that writers are throttled for a shorter time; they compete with writers for
    /// processors. Trees of fewer than 256 leaves are merged by one thread, and merges of lower levels do not use this
    /// setting. Raise it if spills are behind while processors idle.
    pub fn spill_threads(mut self, threads: usize) -> Self {
        self.engine.spill_threads = threads;
        self
    }

    /// Size ratio of neighbouring levels of a region: 2 to 100, default 8. `None`: each region has one level of any
    /// size.
    ///
    /// Level n holds up to half an L0 times the factor to the power of n; a region gets levels as its index grows. A
    /// smaller factor means fewer bytes written by spills and merges, and more trees that a get may have to search;
    /// filters avoid most of those reads. `None` gives the cheapest reads, and spills that rewrite more leaves the
    /// larger the region is. Change it for indexes much larger than L0.
    pub fn growth_factor(mut self, factor: impl Into<Option<u32>>) -> Self {
        self.engine.growth_factor = factor.into();
        self
    }

    /// Calls `listener` for each [`Event`] of the store: spills, merges, collection, checkpoints, stalls of writers, and the failure
    /// that ends all writing. A later call replaces the listener. Subscribers of `tracing` get the same without one.
    ///
    /// It is called by the thread to which the event happened while that holds locks of the store: it must return soon and
    /// call no method of the store. A panic in it is logged.
    ///
    /// ```
    /// # fn main() -> kreon::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("heard.kreon");
    /// use kreon::{Event, Store};
    ///
    /// let (told, events) = std::sync::mpsc::channel();
    /// let listener = move |event: &Event| drop(told.send(event.clone()));
    /// let store = Store::options().listener(listener).open(&path)?;
    /// store.region("r")?.put("k", "v")?;
    /// store.checkpoint()?;
    /// assert!(events.try_iter().any(|event| matches!(event, Event::SpillEnded { error: None, .. })));
    /// # Ok(())
    /// # }
    /// ```
    pub fn listener(mut self, listener: impl Fn(&Event) + Send + Sync + 'static) -> Self {
        self.engine.events = Events::of(listener);
        self
    }

    /// Runs background work in the calling thread, so that every run of a test is the same.
    #[doc(hidden)]
    pub fn background_inline(mut self) -> Self {
        self.engine.background = kreon_engine::Background::Inline;
        self
    }

    /// The clock by which keys expire, for tests: see [`Region::put_with_ttl`](crate::Region::put_with_ttl). Like `Device`
    /// not part of the stable API.
    #[doc(hidden)]
    pub fn clock(mut self, clock: kreon_engine::Clock) -> Self {
        self.engine.clock = clock;
        self
    }

    /// Opens the store as the primary of a group of identical volumes: see [`Mirroring`]. For
    /// [`open_on`](Self::open_on) only, on a device that sends the other members what it is told to write;
    /// [`Store::engine`] has what such a primary needs besides. Like `Device` not part of the stable API.
    #[doc(hidden)]
    pub fn mirrored(mut self, mirroring: Mirroring) -> Self {
        self.engine.mirroring = mirroring;
        self
    }

    /// Opens the store at `path`, a file or raw block device, or creates it. Other content at `path` is left untouched,
    /// unless [`format`](Self::format) is set.
    ///
    /// After a crash the opening replays the log behind the last checkpoint or image of L0, at about a second a
    /// gigabyte.
    ///
    /// # Errors
    /// `NotFound`: the folder does not exist, or there is no store and `create(false)` is set. `Busy`: another process
    /// has the store open, and the message names it where the system tells. `InvalidArgument`: `path` is a directory or has content that is not a store, the format is
    /// newer, a setting is out of range, or the folder belongs to a server of a cluster (it has a file `CLUSTER`). `Corruption`: metadata that an opening needs does not verify, or there are
    /// remains of a store without a superblock. `OutOfSpace`, `Io`. `Closed`: this process was forked from one with an
    /// open store.
    pub fn open(self, path: impl AsRef<Path>) -> Result<Store> {
        // What is read from the page cache must be written through it.
        let reads_page_cache = self.engine.designs.mapping.reads_page_cache();
        let file = FileOptions {
            create: self.engine.create && !self.engine.read_only,
            read_only: self.engine.read_only,
            direct: facility(self.direct_io_off || reads_page_cache),
            ring: facility(self.io_uring_off),
            ..FileOptions::default()
        };
        let path = path.as_ref();
        let open = || {
            cluster::refuse_member(path)?;
            if self.engine.mirroring.is_given() {
                return Err(Error::invalid(
                    "a mirrored store is opened with `open_on`, on the device that mirrors it",
                ));
            }
            let (device, _created) = FileDevice::open(path, &file)?;
            let device = Arc::new(device);
            let is_told = self.status && !self.engine.read_only;
            let store = self.open_on(Arc::clone(&device) as Arc<dyn Device>)?;
            if is_told {
                store.engine.serve_status(device.status_socket());
            }
            Ok(store)
        };
        open().map_err(|error| error.within(path.display()))
    }

    /// Opens the store on a device of the caller, for tools that observe or disturb transfers. `Device` is not part of
    /// the stable API.
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

/// Designs to compare with, which only the feature `comparison` has.
#[cfg(feature = "comparison")]
impl Options {
    /// Variants of the page mapping.
    pub fn mapping_modes(mut self, modes: kreon_engine::MappingModes) -> Self {
        self.engine.designs.mapping = modes;
        self
    }

    /// Whether a spill rewrites the whole first level, as stores with sorted files do, instead of only the leaves that
    /// receive entries. Default `false`. Leaves are full afterwards, and each spill writes as many pages as the level
    /// has. To pack leaves once, call [`Region::compact`](crate::Region::compact).
    pub fn full_compaction(mut self, full: bool) -> Self {
        self.engine.designs.full_compaction = full;
        self
    }
}

fn facility(is_off: bool) -> Facility {
    match is_off {
        true => Facility::Off,
        false => Facility::Auto,
    }
}
