//! Mutexes and atomics, under the names of what they guard or count.

use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize};

use parking_lot::{Mutex, MutexGuard};

pub(crate) use parking_lot::Condvar;

/// The state of the pages of a shard.
pub(crate) type ShardMutex<T> = Mutex<T>;
/// Holds a [`ShardMutex`].
pub(crate) type ShardGuard<'a, T> = MutexGuard<'a, T>;
/// A list of free frames.
pub(crate) type ListMutex<T> = Mutex<T>;
/// Retired frames that readers still use.
pub(crate) type LimboMutex<T> = Mutex<T>;
/// Whose turn it is to evict.
pub(crate) type EvictMutex<T> = Mutex<T>;
/// Holds an [`EvictMutex`].
pub(crate) type EvictGuard<'a, T> = MutexGuard<'a, T>;
/// Whose turn it is to look for room in the page array.
pub(crate) type RoomMutex<T> = Mutex<T>;
/// Whose turn it is to write back because too many pages are dirty.
pub(crate) type WriterMutex<T> = Mutex<T>;
/// A shard of the record cache.
pub(crate) type RecordsMutex<T> = Mutex<T>;

/// Resident pages of a priority.
pub(crate) type ResidentCount = AtomicUsize;
/// Dirty pages.
pub(crate) type DirtyCount = AtomicUsize;
/// Free frames.
pub(crate) type FreeCount = AtomicUsize;
/// A statistic.
pub(crate) type StatisticCount = AtomicU64;
/// A generation of records.
pub(crate) type GenerationCount = AtomicU32;
