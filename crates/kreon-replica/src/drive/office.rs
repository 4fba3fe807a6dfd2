//! The office of a primary: its store is opened, serves, and is abandoned.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::thread::Builder;

use kreon_base::{Error, ErrorKind, Lsn, Result};
use kreon_engine::{Engine, Options};
use kreon_format::StoreId;
use kreon_sync::{Condvar, Mutex};
use kreon_volume::superblock;
use kreon_wire::{Member, StreamNumber, Term};

use super::asking::Asker;
use super::equalising::Candidate;
use super::group::{Core, Group};
use super::host::Serving;
use crate::equalise::{Primary as Store, Tapping};
use crate::machine::primary::{Event, Phase, Primary};
use crate::machine::replica::{Event as ReplicaEvent, State};
use crate::machine::{Ask, Known, Moment, Ticket};
use crate::mirror::Position;

/// A member that gave up attempts reports nothing for at most so many times the patience of a seal.
const ATTEMPT_FACTOR_MAX: u64 = 30;

/// The primary of a group, while it serves.
pub(super) struct Office {
    pub machine: Primary,
    pub store: Arc<Store>,
    pub flusher: Arc<Flusher>,
    /// Of the store.
    pub store_id: StoreId,
    /// Free bytes of the members, as they last told.
    pub free_bytes: HashMap<Member, u64>,
    /// The last packet that each member had when the machine was told last.
    pub received: HashMap<Member, StreamNumber>,
    /// Joiners that were asked to prepare for a copy, and when.
    pub asked: HashMap<Member, Moment>,
    /// The store takes no more writes: the machine was told.
    is_poisoned: bool,
}

/// Makes the log durable: here, because a sole member acknowledges nothing else, and on all counted members, for those that
/// ask for it. Each by a thread of its own: a member that is to be removed may never answer, and before it is removed the log
/// may have to be durable here.
pub(super) struct Flusher {
    here: Wanted,
    everywhere: Wanted,
}

/// How far the log is to be durable.
#[derive(Default)]
struct Wanted {
    /// `None`: the thread is to end.
    upto: Mutex<Option<Lsn>>,
    changed: Condvar,
}

impl Wanted {
    fn ask(&self, upto: Lsn) {
        let mut wanted = self.upto.lock();
        *wanted = wanted.map(|wanted| wanted.max(upto));
        drop(wanted);
        self.changed.notify_all();
    }

    fn end(&self) {
        *self.upto.lock() = None;
        self.changed.notify_all();
    }

    /// Waits until more is wanted than what is `done`; `false`: the thread is to end.
    fn wait_for_more(&self, done: Lsn) -> bool {
        let mut wanted = self.upto.lock();
        while wanted.is_some_and(|wanted| wanted <= done) {
            self.changed.wait(&mut wanted);
        }
        wanted.is_some()
    }
}

impl Flusher {
    fn start(group: &Weak<Group>, store: &Arc<Store>) -> Result<Arc<Self>> {
        let wanted = || Wanted {
            upto: Mutex::new(Some(Lsn(0))),
            changed: Condvar::new(),
        };
        let flusher = Arc::new(Self {
            here: wanted(),
            everywhere: wanted(),
        });
        let start = |name: &str, run: fn(&Self, &Weak<Group>, &Store)| {
            let (mine, group, store) =
                (Arc::clone(&flusher), Weak::clone(group), Arc::clone(store));
            let thread = Builder::new().name(name.to_owned());
            let started = thread.spawn(move || run(&mine, &group, &store));
            started.map_err(|error| kreon_base::Error::io("start a thread that flushes", error))
        };
        let started = start("kreon-flush", |flusher, group, store| {
            run(&flusher.here, group, store, flush_here);
        });
        let started = started.and_then(|_| {
            start("kreon-sync", |flusher, group, store| {
                run(&flusher.everywhere, group, store, flush_everywhere);
            })
        });
        started
            .map(|_| Arc::clone(&flusher))
            .inspect_err(|_| flusher.end())
    }

    /// The log is to be durable here up to this.
    pub fn flush(&self, upto: Lsn) {
        self.here.ask(upto);
    }

    /// And on all counted members.
    pub fn sync(&self, upto: Lsn) {
        self.everywhere.ask(upto);
    }

    fn end(&self) {
        self.here.end();
        self.everywhere.end();
    }
}

/// Flushes whenever something is `wanted`, while the office lasts.
fn run(wanted: &Wanted, group: &Weak<Group>, store: &Store, flush: fn(&Store) -> Result<Lsn>) {
    let mut done = Lsn(0);
    let term = store.mirror().term();
    while wanted.wait_for_more(done) {
        let flushed = flush(store).inspect(|upto| done = *upto);
        let Some(group) = group.upgrade() else {
            return;
        };
        let mut core = group.core();
        let is_it = |office: &Office| office.machine.term() == term;
        if !core.office.as_ref().is_some_and(is_it) {
            return;
        }
        match flushed {
            Ok(upto) => group.primary(&mut core, Event::Durable(upto)),
            Err(error) if error.kind() == ErrorKind::Closed => return,
            Err(error) => {
                tracing::error!(%error, "the log cannot be made durable");
                core.has_failed = true;
                return group.primary(&mut core, Event::DeviceFailed);
            }
        }
        // Those of the members.
        group.sample(&mut core);
    }
}

/// Makes all of the log durable on all counted members.
fn flush_everywhere(store: &Store) -> Result<Lsn> {
    store.engine().sync()?;
    Ok(store.engine().log_durable())
}

/// Makes all of the log durable in the file here, whatever the members do: one of them may be silent.
fn flush_here(store: &Store) -> Result<Lsn> {
    let tail = store.engine().log_tail();
    store.engine().write_log_out(tail)?;
    store.device().below().flush()?;
    Ok(tail)
}

impl Group {
    /// Opens the store with the streams of the candidate.
    pub(super) fn open(&self, term: Term) {
        let options = self.settings.options.clone();
        self.work(Box::new(move |group, files| {
            let mut core = group.core();
            core.followed = None;
            let is_new = core
                .found
                .as_ref()
                .is_none_or(|found| found.examined.is_none());
            let candidate = core.candidate.as_ref().filter(|held| held.term == term);
            let mirror = candidate.and_then(|candidate| candidate.mirror.clone());
            drop(core);
            let Some(mirror) = mirror else {
                return;
            };
            let options = Options {
                create: is_new,
                ..options
            };
            let opened = files
                .device(group)
                .and_then(|device| Store::open(device, mirror, options, Tapping::Thread));
            // The engine unlocks the device at its end.
            files.drop_device();
            match opened {
                Ok(store) => group.on_store_open(term, store),
                Err(error) => {
                    let mut core = group.core();
                    group.give_up(&mut core, term, &error, "the store cannot be opened");
                }
            }
        }));
    }

    /// As a candidate: it cannot go on. The next term begins at once, and for a while nothing is reported here, so that another
    /// member is promoted if there is one.
    pub(super) fn give_up(&self, core: &mut Core, term: Term, error: &Error, what: &str) {
        self.fail(core, error, what);
        let (State::Equalising(office) | State::Opening(office)) = core.replica.state() else {
            return;
        };
        if office.term() != term {
            return; // given up long ago
        }
        let known = office.known.clone();
        core.has_failed |= error.kind() == ErrorKind::Corruption;
        let (attempts, _) = core.given_up;
        let factor = (2 << attempts.min(4)).min(ATTEMPT_FACTOR_MAX);
        let until = self
            .now()
            .after_us(factor * self.settings.timing.seal_patience_us);
        core.given_up = (attempts.saturating_add(1), until);
        let swap = Ask::Swap {
            expected: known.version,
            next: known.config.in_next_term(),
            fence: None,
        };
        // If nobody answers, the master ends the attempt by its time.
        let asker = Asker::GivingUp(self.id());
        self.asking.ask(asker, Ticket::default(), &swap);
    }

    fn on_store_open(&self, term: Term, store: Store) {
        // Also that of a store that was made just now.
        let found = superblock::inspect(&**store.device().below());
        let store_id = found.map_or(None, |(found, _)| found.map(|found| found.store));
        let mut core = self.core();
        let counts = |held: &&mut Candidate| held.term == term;
        let Some(candidate) = core.candidate.as_mut().filter(counts) else {
            drop(core);
            // It was abandoned meanwhile.
            return report(store.abandon("its term is over"));
        };
        candidate.store = Some(Arc::new(store));
        candidate.store_id = store_id.unwrap_or_default();
        tracing::info!(group = self.id().0, term = term.0, "the store is open");
        self.note(|moments, now_us| moments.opened_us = now_us);
        self.replica(&mut core, ReplicaEvent::Opened(term));
    }

    /// The office begins.
    pub(super) fn serve(&self, core: &mut Core, known: Known, since: Moment) {
        let candidate = core.candidate.take();
        let opened = candidate.and_then(|held| held.store.map(|store| (store, held.store_id)));
        let Some((store, store_id)) = opened else {
            return;
        };
        core.given_up = (0, Moment::default());
        let end = store.engine().log_tail();
        let (now, timing) = (self.now(), self.settings.timing);
        let machine = Primary::new(self.me, known, end, since, now, timing);
        let flusher = match Flusher::start(&self.weak, &store) {
            Ok(flusher) => flusher,
            Err(error) => {
                tracing::error!(%error, "an office cannot begin");
                return report(store.abandon("no thread"));
            }
        };
        let serving = Serving {
            term: machine.term(),
            engine: Arc::clone(store.engine()),
            takes_writes: machine.phase() == Phase::Serving,
            known: machine.known().clone(),
        };
        core.office = Some(Office {
            machine,
            store,
            flusher,
            store_id,
            free_bytes: HashMap::new(),
            received: HashMap::new(),
            asked: HashMap::new(),
            is_poisoned: false,
        });
        self.note(|moments, now_us| moments.serving_us = now_us);
        let set = serving.known.config.in_sync.iter();
        let set: Vec<u32> = set.map(|member| member.server.0).collect();
        tracing::info!(
            group = self.id().0,
            term = serving.term.0,
            ?set,
            "this server serves a group"
        );
        self.host.serve(serving);
    }

    /// The machine of the primary learns how far the log is.
    pub(super) fn sample(&self, core: &mut Core) {
        let Some(office) = &core.office else {
            return;
        };
        let engine: &Engine = office.store.engine();
        let (tail, durable) = (engine.log_tail(), engine.log_durable());
        let positions = office.store.mirror().positions();
        self.primary(core, Event::Appended(tail));
        self.primary(core, Event::Durable(durable.min(tail)));
        for position in positions {
            self.sample_member(core, &position);
        }
    }

    fn sample_member(&self, core: &mut Core, position: &Position) {
        let (from, received) = (position.member, position.received);
        if let Some(office) = &mut core.office
            && office.received.insert(from, received) != Some(received)
        {
            self.primary(core, Event::Moved(from));
        }
        let progress = Event::Progress {
            from,
            landed: position.landed,
            durable: position.durable,
        };
        self.primary(core, progress);
        if position.has_ended {
            self.primary(core, Event::Failed(from));
        }
    }

    /// What is to be looked at from time to time while this server is the primary.
    pub(super) fn look_after_office(&self, core: &mut Core) {
        self.forget_unprepared(core);
        let Some(office) = core.office.as_mut().filter(|office| !office.is_poisoned) else {
            return;
        };
        // A spill, a checkpoint or the log may have failed while nobody waited for it. This costs two loads.
        let engine: &Engine = office.store.engine();
        let outcome = engine.write_ahead(&[]);
        let outcome = outcome.and_then(|_| engine.write_log_out(Lsn(0)));
        let Err(error) = outcome else {
            return;
        };
        office.is_poisoned = true;
        if error.kind() != ErrorKind::Closed {
            tracing::error!(%error, "the primary's store takes no more writes: it resigns");
            core.has_failed = true;
            self.primary(core, Event::DeviceFailed);
        }
    }

    /// Ends an office, and what was to become one: nobody is answered any more. The file is free when the worker has come to
    /// what is put to it next.
    pub(super) fn abandon(&self, core: &mut Core, why: &str) {
        let mut stores = Vec::new();
        if let Some(office) = core.office.take() {
            self.host.leave_office();
            office.flusher.end();
            stores.push(office.store);
        }
        if let Some(candidate) = core.candidate.take() {
            if let Some(mirror) = &candidate.mirror {
                mirror.close(why);
            }
            stores.extend(candidate.store);
        }
        for store in stores {
            store.mirror().close(why);
            let why = why.to_owned();
            self.work(Box::new(move |group, files| {
                files.drop_device();
                let durable = store.engine().log_durable();
                report(store.abandon(&why));
                group.core().followed = Some(durable);
            }));
        }
    }
}

fn report(outcome: Result<()>) {
    if let Err(error) = outcome {
        tracing::error!(%error, "a store was abandoned with an error");
    }
}
