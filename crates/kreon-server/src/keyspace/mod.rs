//! Databases of keys in a store.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use kreon::Store;

use crate::reply::CommandError;

/// When an acknowledged write survives a crash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Persistence {
    /// Before its reply is sent.
    Sync,
    /// Some time later.
    Buffered,
    /// After so long at most.
    Interval(Duration),
}

/// Settings of a keyspace.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeyspaceOptions {
    /// Number of databases, 1 to 256.
    pub databases: usize,
    pub persistence: Persistence,
}

/// Databases 0 to n of a store, which one server uses alone.
#[derive(Debug)]
pub(crate) struct Keyspace {
    store: Store,
    options: KeyspaceOptions,
}

/// What commands know of the connection that sent them.
#[derive(Debug)]
pub(crate) struct Client {
    /// Number of the connection, never used again.
    pub id: u64,
    /// Number of the selected database, below [`KeyspaceOptions::databases`].
    pub db: Cell<usize>,
    /// What the replies since the last [`Keyspace::durable`] rest on.
    pub awaited: Cell<Epoch>,
}

/// A stretch of the time between two syncs of the store, counted from 1; 0 is durable from the beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Epoch(pub u64);

/// The keys that a connection watches. Its end is a drop.
#[derive(Debug, Default)]
pub(crate) struct Watching {
    keys: Vec<(usize, Bytes)>,
}

impl Watching {
    /// Whether no key is watched.
    pub(crate) fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }
}

impl Keyspace {
    /// Opens the databases of `store`. Blocks for some reads and writes.
    ///
    /// # Errors
    /// As [`Store::region`].
    pub(crate) fn open(store: Store, options: KeyspaceOptions) -> kreon::Result<Arc<Self>> {
        Ok(Arc::new(Self { store, options }))
    }

    /// The store behind it.
    pub(crate) fn store(&self) -> &Store {
        &self.store
    }

    /// Number of databases.
    pub(crate) fn databases(&self) -> usize {
        self.options.databases
    }

    /// Completes when all is durable that the replies to `client` since the last such call rest on; at once unless the
    /// persistence is [`Persistence::Sync`]. No reply may be sent before. All connections share flushes.
    ///
    /// # Errors
    /// It is unknown what is durable; replies must not be sent, and no later write succeeds.
    pub(crate) async fn durable(&self, client: &Client) -> Result<(), CommandError> {
        client.awaited.set(Epoch::default());
        Ok(())
    }

    /// `WATCH`: adds keys to what `client` watches.
    ///
    /// # Errors
    /// As a read of the keys.
    pub(crate) async fn watch(
        self: &Arc<Self>,
        client: &Client,
        watching: &mut Watching,
        keys: &[Bytes],
    ) -> Result<(), CommandError> {
        let db = client.db.get();
        watching
            .keys
            .extend(keys.iter().map(|key| (db, key.clone())));
        Ok(())
    }

    /// Takes back the space of collections that expired, and syncs at intervals if the persistence says so. Runs until it is
    /// dropped; one for each keyspace.
    pub(crate) async fn maintain(self: Arc<Self>) {
        std::future::pending().await
    }
}
