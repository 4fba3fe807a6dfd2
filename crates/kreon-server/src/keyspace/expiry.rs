//! Upkeep: space of collections that have expired, and syncs at intervals.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use kreon::{Durability, WriteBatch};
use tokio::task::spawn_blocking;
use tokio::time::sleep;

use super::locks::Stripes;
use super::records::{
    COLLECTION, EXPIRY, Head, element_key, expiry_key, parse_expiry_key, prefix_end, record_key,
};
use super::state::Keyspace;
use crate::settings::Persistence;

/// Between two looks for expired collections.
const LOOK_INTERVAL: Duration = Duration::from_millis(500);
/// Collections that one look takes from a database.
const LOOK_MAX: usize = 1024;

/// A collection whose time has come.
#[derive(Debug)]
pub(crate) struct Expired {
    db: usize,
    key: Bytes,
    deadline_ms: u64,
    id: u64,
}

impl Keyspace {
    /// Takes back the space of collections that expired, and syncs at intervals if the persistence says so. Runs until it is
    /// dropped; one for each keyspace. Failures are logged; work goes on.
    pub(crate) async fn maintain(self: Arc<Self>) {
        tokio::join!(self.reclaim_for_ever(), self.sync_for_ever());
    }

    async fn sync_for_ever(&self) {
        let Persistence::Interval(interval) = self.persistence() else {
            return;
        };
        loop {
            sleep(interval).await;
            if let Err(error) = self.store().sync_async().await {
                tracing::error!(%error, "periodic sync failed");
            }
        }
    }

    async fn reclaim_for_ever(self: &Arc<Self>) {
        loop {
            sleep(LOOK_INTERVAL).await;
            while match self.reclaim().await {
                Ok(reclaimed) => reclaimed >= LOOK_MAX,
                Err(error) => {
                    tracing::error!(%error, "space of expired collections was not taken back");
                    false
                }
            } {}
        }
    }

    /// Deletes what is left of collections that have expired; at most [`LOOK_MAX`] of each database. Returns how many there were.
    ///
    /// # Errors
    /// As a read or a write of the store.
    pub(crate) async fn reclaim(self: &Arc<Self>) -> kreon::Result<usize> {
        let keyspace = Arc::clone(self);
        let found = spawn_blocking(move || keyspace.expired()).await;
        let found = found.map_err(|error| kreon::Error::invalid(error.to_string()))??;
        let count = found.len();
        self.reclaim_all(found).await?;
        Ok(count)
    }

    /// Deletes what is left of collections that had expired when they were found.
    ///
    /// # Errors
    /// As a read or a write of the store.
    pub(crate) async fn reclaim_all(self: &Arc<Self>, found: Vec<Expired>) -> kreon::Result<()> {
        for expired in found {
            let stripe = self.locks().stripe(expired.db, &expired.key);
            let held = self.locks().alone(Stripes::One(stripe)).await;
            let keyspace = Arc::clone(self);
            let done = spawn_blocking(move || {
                let (done, _) = keyspace
                    .epochs()
                    .write(held.stripes(), || keyspace.reclaim_one(&expired));
                done
            });
            done.await
                .map_err(|error| kreon::Error::invalid(error.to_string()))??;
        }
        Ok(())
    }

    /// Collections whose deadline has passed; at most [`LOOK_MAX`] of each database.
    ///
    /// # Errors
    /// As a scan of the store.
    pub(crate) fn expired(&self) -> kreon::Result<Vec<Expired>> {
        let mut found = Vec::new();
        let now_ms = self.now_ms();
        for db in 0..self.databases() {
            let Ok(database) = self.database(db) else {
                continue;
            };
            let upto = expiry_key(now_ms, u64::MAX);
            let mut scan = database.region.range(vec![EXPIRY]..upto).limit(LOOK_MAX);
            let parse = |key: &[u8], value: &[u8]| {
                parse_expiry_key(key).map(|(deadline_ms, id)| Expired {
                    db,
                    key: Bytes::copy_from_slice(value),
                    deadline_ms,
                    id,
                })
            };
            while let Some(expired) = scan.next_with(parse)? {
                found.extend(expired);
            }
        }
        Ok(found)
    }

    fn reclaim_one(&self, expired: &Expired) -> kreon::Result<()> {
        let Expired {
            db,
            key,
            deadline_ms,
            id,
        } = expired;
        let Ok(database) = self.database(*db) else {
            return Ok(());
        };
        let region = &database.region;
        let marker = expiry_key(*deadline_ms, *id);
        // A transaction that read before the deadline may have renamed it since it was found: then the lock that is held is not
        // that of its key.
        if region.get(&marker)?.as_deref() != Some(&key[..]) {
            return Ok(());
        }
        let head_key = record_key(COLLECTION, key);
        let head = region.get(&head_key)?.and_then(|head| Head::decode(&head));
        let own = head.filter(|head| head.id == *id);
        let mut batch = WriteBatch::new();
        match own {
            // The clock of the store is behind: next time.
            Some(head) if head.deadline_ms == Some(*deadline_ms) => return Ok(()),
            // It got another deadline.
            Some(_) => (),
            None => {
                if head.is_none() {
                    // Invisible already. Without this a clock that was set back would show it again, without elements.
                    batch.delete(region, head_key);
                }
                let start = element_key(*id, &[]);
                if let Some(end) = prefix_end(&start) {
                    batch.delete_range(region, start..end)?;
                }
            }
        }
        batch.delete(region, marker);
        self.store().write(batch, Durability::Buffered)
    }
}
