//! The databases, and what their commands share.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use kreon::{Clock, Region, Store};

use super::cursors::Cursors;
use super::durable::{Epoch, Epochs, SyncGroup};
use super::failure::Failure;
use super::ids::Ids;
use super::locks::Locks;
use super::random::Random;
use super::records::COLLECTION;
use super::room::{Room, Rooms};
use super::waiters::Waiters;
use super::watch::WatchTable;
use crate::budget::Share;
use crate::reply::CommandError;
use crate::settings::Persistence;

/// Settings of a keyspace.
#[derive(Clone, Debug)]
pub(crate) struct KeyspaceOptions {
    /// Number of databases, 1 to 256.
    pub databases: usize,
    pub persistence: Persistence,
    pub rooms: Rooms,
}

/// Databases 0 to n of a store, which one server uses alone.
#[derive(Debug)]
pub(crate) struct Keyspace {
    store: Store,
    options: KeyspaceOptions,
    databases: Box<[Database]>,
    clock: Clock,
    cursors: Cursors,
    epochs: Epochs,
    ids: Ids,
    locks: Arc<Locks>,
    random: Random,
    waiters: Arc<Waiters>,
    watched: Arc<WatchTable>,
}

/// A database: the region `redis:n`.
#[derive(Debug)]
pub(crate) struct Database {
    pub region: Region,
    has_collections: AtomicBool,
}

/// What commands know of the connection that sent them.
#[derive(Debug, Default)]
pub(crate) struct Client {
    /// Number of the selected database, below [`KeyspaceOptions::databases`].
    pub db: Cell<usize>,
    /// What the replies since the last [`Keyspace::durable`] rest on.
    pub awaited: Cell<Epoch>,
    /// Its command waits for other clients, and has taken nothing yet.
    pub is_waiting: Arc<AtomicBool>,
    /// What replies hold of the budget that are not sent yet.
    held: RefCell<Vec<Share>>,
}

impl Client {
    /// One that tells in `is_waiting` whether it waits.
    pub(crate) fn shown_in(is_waiting: &Arc<AtomicBool>) -> Self {
        Self {
            is_waiting: Arc::clone(is_waiting),
            ..Self::default()
        }
    }

    /// Lets the next replies wait for `epoch`.
    pub(crate) fn rests_on(&self, epoch: Epoch) {
        self.awaited.set(self.awaited.get().max(epoch));
    }

    /// Holds what was gathered for a reply until [`release`](Self::release).
    pub(crate) fn holds(&self, room: Room) {
        self.held.borrow_mut().extend(room.into_share());
    }

    /// The replies count elsewhere from now on, or were sent.
    pub(crate) fn release(&self) {
        self.held.borrow_mut().clear();
    }
}

impl Database {
    /// Whether it may have collections: unset means that it has none.
    pub(crate) fn has_collections(&self) -> bool {
        self.has_collections.load(Ordering::Acquire)
    }

    /// Told before the first collection is written.
    pub(crate) fn expect_collections(&self) {
        if !self.has_collections() {
            self.has_collections.store(true, Ordering::Release);
        }
    }
}

impl Keyspace {
    /// Opens the databases of `store`, which was opened with `clock`. Blocks for some reads and writes. All writes are buffered
    /// ones, whatever durability the store was opened with.
    ///
    /// # Errors
    /// As [`Store::region`].
    pub(crate) fn open(
        store: Store,
        options: KeyspaceOptions,
        clock: Clock,
    ) -> kreon::Result<Arc<Self>> {
        let database = |number| {
            let region = store.region(&format!("redis:{number}"))?;
            let first = region.prefix([COLLECTION]).limit(1).keys().next();
            let has_collections = AtomicBool::new(first.transpose()?.is_some());
            Ok(Database {
                region,
                has_collections,
            })
        };
        let databases = (0..options.databases).map(database);
        let random = Random::new();
        Ok(Arc::new(Self {
            databases: databases.collect::<kreon::Result<_>>()?,
            clock,
            cursors: Cursors::new(&random),
            epochs: Epochs::new(options.persistence == Persistence::Sync),
            ids: Ids::open(&store)?,
            locks: Locks::new(),
            random,
            waiters: Arc::default(),
            watched: Arc::default(),
            store,
            options,
        }))
    }

    /// The store behind it.
    pub(crate) fn store(&self) -> &Store {
        &self.store
    }

    /// Number of databases.
    pub(crate) fn databases(&self) -> usize {
        self.databases.len()
    }

    pub(crate) fn rooms(&self) -> &Rooms {
        &self.options.rooms
    }

    pub(crate) fn persistence(&self) -> Persistence {
        self.options.persistence
    }

    /// # Errors
    /// There is no database of this number.
    pub(crate) fn database(&self, number: usize) -> Result<&Database, Failure> {
        let database = self.databases.get(number);
        database.ok_or_else(|| CommandError::new("ERR DB index is out of range").into())
    }

    /// The time in milliseconds since 1970; never goes back.
    pub(crate) fn now_ms(&self) -> u64 {
        self.clock.now().ms()
    }

    pub(crate) fn cursors(&self) -> &Cursors {
        &self.cursors
    }

    pub(crate) fn epochs(&self) -> &Epochs {
        &self.epochs
    }

    pub(crate) fn ids(&self) -> &Ids {
        &self.ids
    }

    pub(crate) fn locks(&self) -> &Arc<Locks> {
        &self.locks
    }

    pub(crate) fn random(&self) -> &Random {
        &self.random
    }

    pub(crate) fn waiters(&self) -> &Arc<Waiters> {
        &self.waiters
    }

    pub(crate) fn watched(&self) -> &Arc<WatchTable> {
        &self.watched
    }

    /// Completes when all is durable that the replies to `client` since the last such call rest on; at once unless the
    /// persistence is [`Persistence::Sync`]. No reply may be sent before. The connections of `group` share syncs.
    ///
    /// # Errors
    /// It is unknown what is durable; replies must not be sent, and no later write succeeds.
    pub(crate) async fn durable(
        &self,
        client: &Client,
        group: &SyncGroup,
    ) -> Result<(), CommandError> {
        let awaited = client.awaited.take();
        let durable = group.wait(&self.epochs, &self.store, awaited).await;
        durable.map_err(|error| Failure::from(error).into_error())
    }
}
