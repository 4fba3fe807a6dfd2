//! Who carries an order out.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use kreon_base::{Error, Result};
use kreon_coord::{Paths, Version};
use kreon_fabric::Fabric;
use kreon_replica::drive::Server;
use kreon_sync::Mutex;
use kreon_wire::{Failure, FailureKind, GroupId, Member, Reply, ServerId};

use super::configs::Office;
use super::running::{Running, Turn};
use super::{Given, Outcome, Refusal, losses};
use crate::client::Due;
use crate::settings::Coordination;
use crate::talk::Talk;

/// The primaries of a dropped table give its ranges up within this, or the operator is told that they have not.
const DROP_PATIENCE: Duration = Duration::from_secs(30);

/// Sessions that are kept for the next orders.
const TALKS_MAX: usize = 2;

/// A table whose ranges are being given up.
pub(super) struct Dropped {
    pub(super) table: String,
    pub(super) until: Instant,
    /// Who waits for it.
    pub(super) due: Due,
}

/// What all who carry orders out have.
pub(super) struct Shared {
    pub(super) coordination: Coordination,
    pub(super) paths: Paths,
    pub(super) fabric: Arc<dyn Fabric>,
    pub(super) server: Weak<Server>,
    /// This server, in this start.
    pub(super) me: Member,
    pub(super) running: Arc<Running>,
    pub(super) drops: Mutex<Vec<Dropped>>,
    /// Primaries that the master wants to hand over, and whom nobody has asked yet.
    pub(super) hand_overs: Mutex<HashMap<GroupId, Member>>,
    /// Sessions that nobody uses at present.
    pub(super) talks: Mutex<Vec<Talk>>,
}

/// Who carries an order out.
pub(super) struct Clerk {
    pub(super) shared: Arc<Shared>,
    /// The session, while one is needed.
    talk: Option<Talk>,
}

impl Drop for Clerk {
    fn drop(&mut self) {
        if let Some(talk) = self.talk.take() {
            let mut talks = self.shared.talks.lock();
            if talks.len() < TALKS_MAX {
                talks.push(talk);
            }
        }
    }
}

impl Clerk {
    pub(super) fn new(shared: &Arc<Shared>) -> Self {
        Self {
            shared: Arc::clone(shared),
            talk: None,
        }
    }

    pub(super) fn running(&self) -> Option<Arc<Server>> {
        self.shared.server.upgrade()
    }

    pub(super) fn is_master(&self) -> bool {
        self.fence().is_some()
    }

    pub(super) fn paths(&self) -> &Paths {
        &self.shared.paths
    }

    pub(super) fn fabric(&self) -> &dyn Fabric {
        &*self.shared.fabric
    }

    pub(super) fn fence(&self) -> Option<Version> {
        let fence = self.running()?.fence()?;
        Some(Version(fence.0))
    }

    pub(super) fn talk(&mut self) -> Result<&mut Talk> {
        if self.talk.is_none() {
            self.talk = self.shared.talks.lock().pop();
        }
        if self.talk.is_none() {
            self.talk = Some(Talk::new(self.shared.coordination.begin()?));
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
        self.with_fence(fence, act)
    }

    /// Reads what the coordinator has, in office or not; what is written here is refused.
    pub(super) fn look<T>(
        &mut self,
        act: impl FnOnce(&mut Office<'_>) -> Outcome<T>,
    ) -> Outcome<T> {
        self.with_fence(Version(u64::MAX), act)
    }

    fn with_fence<T>(
        &mut self,
        fence: Version,
        act: impl FnOnce(&mut Office<'_>) -> Outcome<T>,
    ) -> Outcome<T> {
        let paths = self.shared.paths.clone();
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
    pub(super) fn master(&mut self) -> Outcome<Option<ServerId>> {
        self.look(|office| {
            let candidates = office.talk.children(&office.paths.master(), false)?;
            let candidates = candidates.unwrap_or_default();
            let live = office.talk.children(&office.paths.live(), false)?;
            let of_first = |name: &String| {
                let (server, process) = Paths::live_of(name)?;
                let own = kreon_coord::first_of(&Paths::candidate(process), &candidates)?;
                let is_first =
                    kreon_coord::standing(own, &candidates) == kreon_coord::Standing::First;
                is_first.then_some(ServerId(server))
            };
            Ok(live.unwrap_or_default().iter().find_map(of_first))
        })
    }

    fn not_master(&mut self) -> Refusal {
        Refusal {
            master: self.master().ok().flatten().unwrap_or_default(),
            ..Refusal::new(FailureKind::NotMaster, "this server is not the master")
        }
    }

    /// Whether orders are to be given up.
    pub(super) fn is_over(&self) -> bool {
        self.shared.running.is_over()
    }

    pub(super) fn carry_out(&mut self, order: Given, due: Due, turn: Turn) {
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
            Given::RemoveMember(group, server) => self.remove_member(group, server),
            Given::Promote(group, server) => self.promote(group, server),
            Given::HandOver(group) => self.hand_over(group),
            // Desks answer it themselves.
            Given::OfDesk => Ok(()),
        };
        // Who is answered may give the next one.
        drop(turn);
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
                let dropped = Dropped { table, until, due };
                self.shared.drops.lock().push(dropped);
            }
            Err(refusal) => answer(due, Err(refusal)),
        }
    }

    fn accept_loss(&mut self, loss: (GroupId, ServerId, Option<kreon_wire::Term>)) -> Outcome {
        if self.fence().is_none() {
            return Err(self.not_master());
        }
        let Some(server) = self.running() else {
            return Err(Refusal::new(FailureKind::Unavailable, "the server ends"));
        };
        let (group, survivor, _) = loss;
        let (before, _) = self.in_office(|office| office.config(group))?;
        let shared = Arc::clone(&self.shared);
        losses::accept(&server, loss, || {
            if shared.running.is_over() {
                return Err(Refusal::new(FailureKind::Unavailable, "the server ends"));
            }
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
pub(super) fn answer(due: Due, outcome: Outcome) {
    match outcome {
        Ok(()) => due.reply(&Reply::Done),
        Err(refusal) if refusal.kind == FailureKind::NotMaster => {
            let failure = Failure::not_master(refusal.master, &refusal.text);
            due.reply(&Reply::Failed(failure));
        }
        Err(refusal) => due.fail(refusal.kind, &refusal.text),
    }
}
