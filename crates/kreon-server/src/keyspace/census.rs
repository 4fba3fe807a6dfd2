//! How many keys there are: the store keeps no number of them, so they are counted one by one.

use std::sync::Arc;

use tokio::task::spawn_blocking;

use super::failure::Failure;
use super::records::{COLLECTION, STRING};
use super::state::Keyspace;
use crate::reply::CommandError;

impl Keyspace {
    /// The number of keys in each database that has any. Reads all keys, on a thread that may wait for the device.
    ///
    /// # Errors
    /// As a scan.
    pub(crate) async fn census(self: &Arc<Self>) -> Result<Vec<(usize, u64)>, CommandError> {
        let keyspace = Arc::clone(self);
        let counted = spawn_blocking(move || keyspace.count_all()).await;
        match counted {
            Ok(counted) => counted.map_err(Failure::into_error),
            Err(error) => Err(CommandError::of(format!("ERR {error}"))),
        }
    }

    fn count_all(&self) -> Result<Vec<(usize, u64)>, Failure> {
        let mut counted = Vec::new();
        for db in 0..self.databases() {
            let mut keys = 0;
            for kind in [COLLECTION, STRING] {
                let mut scan = self.database(db)?.region.prefix([kind]).keys();
                while scan.next_with(|_| ())?.is_some() {
                    keys += 1;
                }
            }
            if keys > 0 {
                counted.push((db, keys));
            }
        }
        Ok(counted)
    }
}
