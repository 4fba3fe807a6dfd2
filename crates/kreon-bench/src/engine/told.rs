//! How the stores are set, in words, for those who read the figures. The settings and their reasons: [`super::tuning`].

use super::Kind;
use super::tuning::Means;

/// The settings of `engine`; `None` of those that have none in this build.
pub fn settings(engine: Kind, means: &Means) -> Option<String> {
    match engine {
        Kind::Kreon | Kind::Kvell => {
            Some(format!("its defaults in {}", mib(means.own_memory_bytes())))
        }
        Kind::Tucana => {
            let set = super::tuning::tucana(means);
            Some(format!(
                "{} for nodes and reads of the log, {} for segments of the log, a commit every {} s or {} of log{}",
                mib(set.memory_bytes),
                mib(set.log_bytes),
                set.commit_seconds,
                mib(set.commit_log_bytes as usize),
                match means.is_sync {
                    true => ", a flush of the log with each put",
                    false => "",
                }
            ))
        }
        #[cfg(feature = "rocksdb")]
        Kind::Rocksdb | Kind::Blobdb => Some(rocksdb(means, engine == Kind::Blobdb)),
        #[cfg(feature = "lmdb")]
        Kind::Lmdb => Some(lmdb(means)),
        #[cfg(feature = "fjall")]
        Kind::Fjall => {
            let set = super::tuning::fjall(means);
            Some(format!(
                "cache of {}, write buffers of {}, {} threads behind",
                mib(set.cache_bytes as usize),
                mib(set.write_buffer_bytes as usize),
                set.background_threads
            ))
        }
        #[cfg(feature = "redb")]
        Kind::Redb => Some(format!(
            "cache of {}, {}",
            mib(super::tuning::redb_cache_bytes(means)),
            match means.is_sync {
                true => "every commit durable".to_owned(),
                false => format!(
                    "one commit in {} durable",
                    super::tuning::redb_puts_per_flush(means)
                ),
            }
        )),
        #[cfg(feature = "bf-tree")]
        Kind::Bftree => {
            let set = super::tuning::bftree(means);
            Some(format!(
                "buffer of {}, leaves of {} KiB, {} % of the misses promoted, not durable",
                mib(set.buffer_bytes),
                set.leaf_bytes >> 10,
                set.promotion_percent
            ))
        }
        #[cfg(feature = "wiredtiger")]
        Kind::Wiredtiger => Some(wiredtiger(means)),
        _ => None,
    }
}

#[cfg(feature = "rocksdb")]
fn rocksdb(means: &Means, blobs: bool) -> String {
    let set = super::tuning::rocksdb(means);
    format!(
        "{}, {} block cache of {}, {} write buffers of {}, filters of {} bits a key, {} threads behind{}",
        match set.is_direct {
            true => "direct I/O",
            false => "buffered I/O",
        },
        match set.has_clock_cache {
            true => "HyperClock",
            false => "LRU",
        },
        mib(set.cache_bytes),
        set.write_buffers,
        mib(set.write_buffer_bytes),
        set.filter_bits_per_key,
        set.background_threads,
        match blobs {
            true => format!(", values from {} B on in blob files", set.blob_bytes_min),
            false => String::new(),
        }
    )
}

#[cfg(feature = "lmdb")]
fn lmdb(means: &Means) -> String {
    let how = match means.is_sync {
        true => "every commit durable",
        false => "WRITEMAP, MAPASYNC, NOSYNC",
    };
    format!(
        "{how}, map of {}",
        mib(super::tuning::lmdb_map_bytes(means))
    )
}

#[cfg(feature = "wiredtiger")]
fn wiredtiger(means: &Means) -> String {
    let set = super::tuning::wiredtiger(means);
    format!(
        "buffered I/O, cache of {}, leaves of {} KiB, changed pages written from {} % of the cache on, {}, \
         a checkpoint every {} s or {} of log, up to {} threads that evict",
        mib(set.cache_bytes),
        set.leaf_bytes >> 10,
        set.dirty_percent,
        match means.is_sync {
            true => "every commit durable, zeroes written ahead of the log",
            false => "log not flushed",
        },
        set.checkpoint_seconds,
        mib(set.checkpoint_log_bytes as usize),
        set.eviction_threads_max
    )
}

fn mib(bytes: usize) -> String {
    format!("{} MiB", bytes >> 20)
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum;

    use super::*;

    #[test]
    fn every_store_of_this_build_tells_its_settings() {
        let means = Means {
            memory_bytes: 1 << 30,
            data_bytes: 256 << 20,
            ..Means::default()
        };
        for engine in Kind::value_variants() {
            let told = settings(*engine, &means);
            assert_eq!(
                told.is_some(),
                engine.is_store() && engine.is_built(),
                "{engine:?}"
            );
        }
    }
}
