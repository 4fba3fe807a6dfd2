//! A joiner, as its primary sees it: everything is copied to it while the store goes on.

use std::sync::Arc;
use std::thread::Builder;

use kreon_base::Result;
use kreon_engine::Engine;
use kreon_wire::{Attach, Control, Member, Room, Term};

use super::equalising::opening;
use super::group::{Core, Group};
use super::office::Office;
use crate::equalise::Primary as Store;
use crate::machine::primary::{Event, JOINER_SILENCES};
use crate::mirror::Carrier;
use crate::resync::Resync;

impl Group {
    /// Asks a joiner to prepare for a copy.
    pub(super) fn attach(&self, core: &mut Core, joiner: Member) {
        let Some(office) = &core.office else {
            return;
        };
        let term = office.machine.term();
        let (config, store) = (
            office.machine.known().config.clone(),
            Arc::clone(&office.store),
        );
        let id = office.store_id;
        self.work(Box::new(move |group, _| {
            let volume_bytes = store.device().below().len_bytes();
            let backed_bytes = store.engine().occupied().map(|occupied| {
                let backed = occupied.backed.iter();
                backed.map(|(_, bytes)| bytes).sum()
            });
            let open = opening(group, &config, (id, volume_bytes));
            let mut core = group.core();
            let counts = |office: &&mut Office| office.machine.term() == term;
            let Some(office) = core.office.as_mut().filter(counts) else {
                return;
            };
            match (open, backed_bytes) {
                (Some(open), Ok(backed_bytes)) => {
                    office.asked.insert(joiner, group.now());
                    let attach = Attach { open, backed_bytes };
                    group.ask(&mut core, joiner, term, &Control::Attach(attach));
                }
                // It asks again.
                _ => group.primary(&mut core, Event::Failed(joiner)),
            }
        }));
    }

    /// Joiners that were asked to prepare for a copy, and say nothing, have lost the question, or their answer was lost.
    pub(super) fn forget_unprepared(&self, core: &mut Core) {
        let (now, silence_us) = (self.now(), self.settings.timing.silence_us);
        let Some(office) = &mut core.office else {
            return;
        };
        let mut silent = Vec::new();
        office.asked.retain(|joiner, since| {
            let is_silent = now.since_us(*since) >= JOINER_SILENCES * silence_us;
            if is_silent {
                silent.push(*joiner);
            }
            !is_silent
        });
        for joiner in silent {
            tracing::warn!(?joiner, "a joiner does not prepare for its copy");
            self.primary(core, Event::Failed(joiner));
        }
    }

    /// A joiner is prepared: a thread of its own copies to it.
    pub(super) fn on_attached(&self, core: &mut Core, joiner: Member, term: Term, room: Room) {
        let is_it = |office: &&mut Office| office.machine.term() == term;
        let Some(office) = core.office.as_mut().filter(is_it) else {
            return;
        };
        if office.asked.remove(&joiner).is_none() {
            return; // a copy to it has begun, or nobody has asked it
        }
        let peers = office.machine.peers();
        if !peers.iter().any(|peer| peer.member == joiner) {
            return self.primary(core, Event::Failed(joiner));
        }
        let (store, weak) = (Arc::clone(&office.store), self.weak.clone());
        self.primary(core, Event::Moved(joiner));
        let thread = Builder::new().name("kreon-resync".into());
        let copying = thread.spawn(move || {
            let Some(group) = weak.upgrade() else {
                return;
            };
            let copied = group.copy_to(&store, joiner, room);
            let mut core = group.core();
            let is_over = |office: &Office| office.machine.term() != term;
            if core.office.as_ref().is_none_or(is_over) {
                return;
            }
            match copied {
                Ok(()) => {
                    group.sample(&mut core);
                    let positions = store.mirror().positions();
                    let own = positions.iter().find(|position| position.member == joiner);
                    if let Some(position) = own {
                        let (peer, landed) = (joiner, position.landed);
                        group.primary(&mut core, Event::Copied { peer, landed });
                    }
                }
                Err(error) => {
                    tracing::warn!(%error, ?joiner, "a copy has ended");
                    group.primary(&mut core, Event::Failed(joiner));
                }
            }
        });
        if let Err(error) = copying {
            tracing::error!(%error, "no thread for a copy can be started");
            self.primary(core, Event::Failed(joiner));
        }
    }

    /// Copies all that is in use to the joiner and completes its volume; it counts here when this returns.
    fn copy_to(&self, store: &Store, joiner: Member, room: Room) -> Result<()> {
        let (engine, mirror): (&Engine, _) = (store.engine(), store.mirror());
        let below = store.device().below();
        let wire = self.links.stream_to(joiner)?;
        mirror.attach(joiner, wire as Arc<dyn Carrier>, room, below.len_bytes())?;
        // What is durable is copied from the file, and the log sent from there on: it has to be in memory.
        engine.sync()?;
        let mut resync = Resync::list(engine, mirror, joiner)?;
        resync.reserve(mirror)?;
        let (group, bytes) = (self.id().0, resync.left_bytes());
        tracing::info!(group, to = joiner.server.0, bytes, "a copy begins");
        while resync.copy(mirror, &**below)? {}
        resync.complete(engine, mirror, &**below)
    }
}
