//! The thread that carries orders out, one after the other.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Weak};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use kreon_base::{Error, Result};
use kreon_coord::{Paths, Version};
use kreon_replica::drive::Server;
use kreon_sync::Mutex;
use kreon_wire::{Failure, FailureKind, Order, Reply, ServerId};

use super::configs::Office;
use super::{Given, Outcome, Refusal, losses};
use crate::client::Due;
use crate::settings::Coordination;
use crate::talk::Talk;

/// Orders that wait; more are refused.
const WAITING_MAX: usize = 64;

/// The thread looks so often what a new office has left to do, and whether dropped tables are gone.
const EVERY: Duration = Duration::from_millis(50);

/// The primaries of a dropped table give its ranges up within this, or the operator is told that they have not.
const DROP_PATIENCE: Duration = Duration::from_secs(30);

/// Takes orders to the thread that carries them out.
pub struct Orders {
    given: Mutex<Option<SyncSender<(Given, Due)>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Orders {
    /// Starts the thread.
    ///
    /// # Errors
    /// `Io`: there is none to be had.
    pub fn start(
        coordination: Coordination,
        paths: Paths,
        server: &Arc<Server>,
    ) -> Result<Arc<Self>> {
        let (sender, receiver) = sync_channel(WAITING_MAX);
        let clerk = Clerk {
            coordination,
            paths,
            server: Arc::downgrade(server),
            talk: None,
            cleared: None,
            drops: VecDeque::new(),
        };
        let thread = Builder::new().name("kreon-orders".into());
        let thread = thread.spawn(move || clerk.run(&receiver));
        let thread = thread.map_err(|error| Error::io("start a thread for orders", error))?;
        Ok(Arc::new(Self {
            given: Mutex::new(Some(sender)),
            thread: Mutex::new(Some(thread)),
        }))
    }

    /// An order, which is answered when it is carried out.
    pub fn put(&self, order: &Order<'_>, mut due: Due) {
        let order = Given::of(order);
        due.hold(order.len_bytes());
        let given = self.given.lock();
        let Some(sender) = &*given else {
            return due.fail(FailureKind::Unavailable, "the server ends");
        };
        if let Err(refused) = sender.try_send((order, due)) {
            let (std::sync::mpsc::TrySendError::Full((_, due))
            | std::sync::mpsc::TrySendError::Disconnected((_, due))) = refused;
            due.fail(FailureKind::Busy, "too many orders wait");
        }
    }

    /// Takes no order any more.
    pub fn end(&self) {
        drop(self.given.lock().take());
        if let Some(thread) = self.thread.lock().take()
            && thread.join().is_err()
        {
            tracing::error!("the thread for orders had panicked");
        }
    }
}

/// What the thread has.
pub(super) struct Clerk {
    coordination: Coordination,
    paths: Paths,
    server: Weak<Server>,
    /// The session, while one is needed.
    talk: Option<Talk>,
    /// In the office with this fence, what was begun before is finished.
    cleared: Option<Version>,
    /// Tables whose ranges are being given up, until when, and who waits for that.
    drops: VecDeque<(String, Instant, Due)>,
}

impl Clerk {
    fn run(mut self, orders: &Receiver<(Given, Due)>) {
        loop {
            match orders.recv_timeout(EVERY) {
                Ok((order, due)) => self.carry_out(order, due),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            self.finish_tables();
            self.watch_drops();
        }
    }

    fn fence(&self) -> Option<Version> {
        let fence = self.server.upgrade()?.fence()?;
        Some(Version(fence.0))
    }

    fn talk(&mut self) -> Result<&mut Talk> {
        if self.talk.is_none() {
            self.talk = Some(Talk::new(self.coordination.begin()?));
        }
        // It was set if there was none.
        self.talk
            .as_mut()
            .ok_or_else(|| Error::invalid("no session"))
    }

    /// Does something in the master's office.
    pub(super) fn in_office<T>(
        &mut self,
        act: impl FnOnce(&mut Office<'_>) -> Outcome<T>,
    ) -> Outcome<T> {
        let Some(fence) = self.fence() else {
            return Err(self.not_master());
        };
        let paths = self.paths.clone();
        let talk = self.talk()?;
        let outcome = act(&mut Office {
            talk,
            paths: &paths,
            fence,
        });
        if outcome.is_err() {
            // The session may be what is wrong.
            self.talk = None;
        }
        outcome
    }

    /// Who may be in office: whose node stands first.
    fn not_master(&mut self) -> Refusal {
        let paths = self.paths.clone();
        let mut find = || -> Result<Option<ServerId>> {
            let talk = self.talk()?;
            let candidates = talk.children(&paths.master(), false)?.unwrap_or_default();
            let live = talk.children(&paths.live(), false)?.unwrap_or_default();
            let of_first = |name: &String| {
                let (server, process) = Paths::live_of(name)?;
                let own = kreon_coord::first_of(&Paths::candidate(process), &candidates)?;
                let is_first =
                    kreon_coord::standing(own, &candidates) == kreon_coord::Standing::First;
                is_first.then_some(ServerId(server))
            };
            Ok(live.iter().find_map(of_first))
        };
        let found = find();
        if found.is_err() {
            self.talk = None;
        }
        Refusal {
            master: found.ok().flatten().unwrap_or_default(),
            ..Refusal::new(FailureKind::NotMaster, "this server is not the master")
        }
    }

    fn carry_out(&mut self, order: Given, due: Due) {
        tracing::info!(?order, "an order");
        let outcome = match order {
            Given::CreateTable { table, splits } => {
                self.in_office(|office| office.create_table(&table, &splits))
            }
            Given::DropTable(table) => return self.drop_table(table, due),
            Given::AddMember(group, server) => {
                self.in_office(|office| office.add_member(group, server))
            }
            Given::AcceptLoss(group, server, vouched) => self.accept_loss((group, server, vouched)),
            other => self.planned(&other),
        };
        answer(due, outcome);
    }

    fn drop_table(&mut self, table: String, due: Due) {
        match self.in_office(|office| Ok((office.begin_drop(&table)?, office.is_gone(&table)?))) {
            Ok((false, true)) => {
                let text = format!("there is no table {table:?}");
                answer(due, Err(Refusal::new(FailureKind::NoTable, text)));
            }
            Ok(_) => {
                let until = Instant::now() + DROP_PATIENCE;
                self.drops.push_back((table, until, due));
            }
            Err(refusal) => answer(due, Err(refusal)),
        }
    }

    /// Answers those whose table is gone by now.
    fn watch_drops(&mut self) {
        for _ in 0..self.drops.len() {
            let Some((table, until, due)) = self.drops.pop_front() else {
                return;
            };
            match self.in_office(|office| office.is_gone(&table)) {
                Ok(true) => answer(due, Ok(())),
                Ok(false) if Instant::now() < until => self.drops.push_back((table, until, due)),
                Ok(false) => {
                    let text = "the table is dropped, but not all groups have given up its ranges";
                    answer(due, Err(Refusal::new(FailureKind::Unavailable, text)));
                }
                Err(refusal) => answer(due, Err(refusal)),
            }
        }
    }

    /// Tables that an office before has begun get all their ranges.
    fn finish_tables(&mut self) {
        let fence = self.fence();
        if fence.is_none() || fence == self.cleared {
            return;
        }
        let finished = self.in_office(|office| {
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

    fn accept_loss(
        &mut self,
        loss: (kreon_wire::GroupId, ServerId, Option<kreon_wire::Term>),
    ) -> Outcome {
        if self.fence().is_none() {
            return Err(self.not_master());
        }
        let Some(server) = self.server.upgrade() else {
            return Err(Refusal::new(FailureKind::Unavailable, "the server ends"));
        };
        let (group, survivor, _) = loss;
        let (before, _) = self.in_office(|office| office.config(group))?;
        losses::accept(&server, loss, || {
            let (config, _) = self.in_office(|office| office.config(group))?;
            let is_alone = config
                .in_sync
                .iter()
                .all(|member| member.server == survivor);
            Ok(config.loss_term > before.loss_term && is_alone)
        })
    }
}

/// The operator is told.
fn answer(due: Due, outcome: Outcome) {
    match outcome {
        Ok(()) => due.reply(&Reply::Done),
        Err(refusal) if refusal.kind == FailureKind::NotMaster => {
            let failure = Failure::not_master(refusal.master, &refusal.text);
            due.reply(&Reply::Failed(failure));
        }
        Err(refusal) => due.fail(refusal.kind, &refusal.text),
    }
}
