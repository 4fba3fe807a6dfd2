//! What threads demand of what they share; only with the feature `lock-times`.

use super::Mapping;
use crate::record_cache::RecordCache;
use crate::shared::{self, CountWrites, LockTimes};

impl Mapping {
    /// How long locks were held, by kind. The numbers of locks are those of this mapping, all else is of the whole process.
    pub fn lock_times(&self) -> impl Iterator<Item = LockTimes> {
        let reader = self.reader();
        let table = reader.table();
        let records = reader.frames.records().map_or(0, RecordCache::shards);
        let (shards, lists) = (table.shards(), table.pool().lists());
        shared::lock_times([shards, lists, 1, reader.frames.turns(), 1, 1, records])
    }

    /// How often counts that all threads share were written in the whole process.
    pub fn count_writes(&self) -> impl Iterator<Item = CountWrites> {
        shared::count_writes()
    }
}
