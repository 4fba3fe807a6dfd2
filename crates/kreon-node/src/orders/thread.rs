//! Orders come in, and each gets a thread: some take seconds. Another thread does what no order is given for.

use std::sync::Arc;
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use kreon_base::{Error, Result};
use kreon_coord::{Paths, Version};
use kreon_fabric::{Fabric, Link};
use kreon_replica::drive::Server;
use kreon_sync::Mutex;
use kreon_wire::{FailureKind, Member, Order, ServerId};

use super::clerk::{Clerk, Shared, answer};
use super::running::{About, Running};
use super::{Given, Outcome, Refusal};
use crate::client::Due;
use crate::settings::Coordination;

/// The thread looks so often what a new office has left to do, and whether dropped tables are gone.
const EVERY: Duration = Duration::from_millis(50);

/// So often it looks whether a server is the primary of more groups than it takes.
const RELIEF_EVERY: Duration = Duration::from_secs(2);

/// Has orders carried out.
pub struct Orders {
    shared: Arc<Shared>,
    keeper: Mutex<Option<JoinHandle<()>>>,
}

impl Orders {
    /// Starts the thread that no order is given for.
    ///
    /// # Errors
    /// `Io`: there is none to be had.
    pub fn start(
        coordination: Coordination,
        paths: Paths,
        (fabric, server): (Arc<dyn Fabric>, &Arc<Server>),
    ) -> Result<Arc<Self>> {
        let shared = Arc::new(Shared {
            coordination,
            paths,
            fabric,
            server: Arc::downgrade(server),
            me: server.links().me(),
            running: Arc::new(Running::default()),
            drops: Mutex::default(),
            hand_overs: Mutex::default(),
            talks: Mutex::default(),
        });
        let keeper = Keeper {
            clerk: Clerk::new(&shared),
            cleared: None,
            relieved: Instant::now(),
        };
        let thread = Builder::new().name("kreon-orders".into());
        let thread = thread.spawn(move || keeper.run());
        let thread = thread.map_err(|error| Error::io("start a thread for orders", error))?;
        Ok(Arc::new(Self {
            shared,
            keeper: Mutex::new(Some(thread)),
        }))
    }

    /// An order, which is answered when it is carried out.
    pub fn put(&self, order: &Order<'_>, mut due: Due) {
        let order = Given::of(order);
        due.hold(order.len_bytes());
        let turn = match self.shared.running.begin(order.about()) {
            Ok(turn) => turn,
            Err(text) => return due.fail(FailureKind::Busy, &text),
        };
        // Whoever takes it answers: the thread, or this one if there is none.
        let given = Arc::new(Mutex::new(Some((order, due))));
        let of_thread = Arc::clone(&given);
        let mut clerk = Clerk::new(&self.shared);
        let started = Builder::new().name("kreon-order".into()).spawn(move || {
            let given = of_thread.lock().take();
            if let Some((order, due)) = given {
                clerk.carry_out(order, due, turn);
            }
        });
        if let Err(error) = started
            && let Some((_, due)) = given.lock().take()
        {
            due.fail(FailureKind::Busy, &error.to_string());
        }
    }

    pub(super) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Whether orders are to be given up.
    pub fn is_over(&self) -> bool {
        self.shared.running.is_over()
    }

    /// This server, in this start.
    pub fn me(&self) -> Member {
        self.shared.me
    }

    /// A link to a server, which takes this one for a client.
    pub fn connect(&self, to: ServerId) -> Outcome<Arc<dyn Link>> {
        Clerk::new(&self.shared).connect(to)
    }

    /// Takes no order any more, and gives up those that are being carried out.
    pub fn end(&self) {
        self.shared.running.end();
        if let Some(thread) = self.keeper.lock().take()
            && thread.join().is_err()
        {
            tracing::error!("the thread for orders had panicked");
        }
    }
}

/// What the thread has that no order is given for.
struct Keeper {
    clerk: Clerk,
    /// In the office with this fence, what was begun before is finished.
    cleared: Option<Version>,
    /// When it was looked last whether somebody has too many groups.
    relieved: Instant,
}

impl Keeper {
    fn run(mut self) {
        while !self.clerk.is_over() {
            self.finish_tables();
            self.watch_drops();
            self.relieve();
            kreon_sync::sleep(EVERY);
        }
    }

    /// Answers those whose table is gone by now.
    fn watch_drops(&mut self) {
        let drops = std::mem::take(&mut *self.clerk.shared.drops.lock());
        for dropped in drops {
            match self
                .clerk
                .in_office(|office| office.is_gone(&dropped.table))
            {
                Ok(true) => answer(dropped.due, Ok(())),
                Ok(false) if Instant::now() < dropped.until => {
                    self.clerk.shared.drops.lock().push(dropped);
                }
                Ok(false) => {
                    let text = "the table is dropped, but not all groups have given up its ranges";
                    answer(
                        dropped.due,
                        Err(Refusal::new(FailureKind::Unavailable, text)),
                    );
                }
                Err(refusal) => answer(dropped.due, Err(refusal)),
            }
        }
    }

    /// Tables that an office before has begun get all their ranges.
    fn finish_tables(&mut self) {
        let fence = self.clerk.fence();
        if fence.is_none() || fence == self.cleared {
            return;
        }
        let finished = self.clerk.in_office(|office| {
            for node in office.unfinished()? {
                office.finish_table(node)?;
            }
            Ok(())
        });
        match finished {
            Ok(()) => self.cleared = fence,
            Err(refusal) => {
                tracing::warn!(
                    why = refusal.text,
                    "tables that were begun are not finished"
                );
            }
        }
    }

    /// A server that is the primary of more groups than it takes, as nobody else could be when it was promoted, gives one to
    /// another member that can be by now.
    fn relieve(&mut self) {
        if self.relieved.elapsed() < RELIEF_EVERY || self.clerk.fence().is_none() {
            return;
        }
        self.relieved = Instant::now();
        let found = self.clerk.in_office(|office| {
            let (configs, loads) = office.loads()?;
            Ok(loads.relief(&configs))
        });
        let Ok(Some((group, to))) = found else {
            return;
        };
        let shared = &self.clerk.shared;
        let Ok(turn) = shared.running.begin(About::Group(group)) else {
            return;
        };
        tracing::info!(group = group.0, to = to.0, "a primary has too many groups");
        let mut clerk = Clerk::new(shared);
        let started = Builder::new().name("kreon-order".into()).spawn(move || {
            if let Err(refusal) = clerk.promote(group, to) {
                tracing::warn!(why = refusal.text, "nobody takes a group over");
            }
            drop((clerk, turn));
        });
        if let Err(error) = started {
            tracing::warn!(%error, "no thread for an order");
        }
    }
}
