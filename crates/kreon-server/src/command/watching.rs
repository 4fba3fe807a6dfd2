//! `WATCH`.

use std::sync::Arc;

use bytes::Bytes;

use super::steps::aside;
use crate::keyspace::{Access, Client, Failure, Keyspace, Source, Watching};
use crate::reply::CommandError;

impl Keyspace {
    /// `WATCH`: adds keys to what `client` watches.
    ///
    /// # Errors
    /// As a read of the keys; some may be watched then.
    pub(crate) async fn watch(
        self: &Arc<Self>,
        client: &Client,
        watching: &mut Watching,
        keys: &[Bytes],
    ) -> Result<(), CommandError> {
        let db = client.db.get();
        // Copies: slices would keep all that was received with them.
        let key = |key: &Bytes| (db, Bytes::copy_from_slice(key));
        let keys: Vec<_> = keys.iter().map(key).collect();
        for key in &keys {
            watching.add(self.watched(), key.clone());
        }
        // After the watch has begun: a change from now on breaks it, and what a change before has left is what is read.
        let reader = Arc::clone(self);
        let deadlines = aside(move || {
            let mut access = Access::new(&reader, db, Source::Device);
            let mut deadlines = Vec::with_capacity(keys.len());
            for key in keys {
                let item = access.item(db, &key.1)?;
                deadlines.push((key, item.and_then(|item| item.deadline_ms())));
            }
            Ok(deadlines)
        });
        for (key, deadline_ms) in deadlines.await.map_err(Failure::into_error)? {
            watching.ends(&key, deadline_ms);
        }
        Ok(())
    }
}
