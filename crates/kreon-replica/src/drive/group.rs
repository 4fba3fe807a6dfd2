//! The machines of one group, under a lock, and what is done for them.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock, Weak};
use std::time::{SystemTime, UNIX_EPOCH};

use kreon_base::{Error, ErrorKind, Lsn, Result, SEGMENT_BYTES};
use kreon_engine::Options;
use kreon_sync::{Mutex, MutexGuard};
use kreon_volume::superblock;
use kreon_wire::{Address, Control, GroupId, Kind, Member, ServerId, Term};

use super::asking::{Asker, Asking};
use super::clock::Clock;
use super::equalising::{Candidate, Found, Package};
use super::following::Following;
use super::host::Host;
use super::links::Links;
use super::office::Office;
use super::volume::Volume;
use super::worker::{Job, Worker};
use crate::follower::Capacity;
use crate::machine::primary::{self, Met, Phase, ReadId};
use crate::machine::replica::{self, Replica};
use crate::machine::{Answer, Moment, Stamp, Ticket, Timing};

/// What a group is opened with.
#[derive(Clone, Debug)]
pub struct GroupSettings {
    /// The group.
    pub id: GroupId,
    /// Of its store, when this server is the primary.
    pub options: Options,
    /// What it grants as a backup.
    pub capacity: Capacity,
    /// How long is waited for what. The same on all servers.
    pub timing: Timing,
}

/// When a replica came how far in its last promotion, in microseconds since 1970 by the clock of the host; 0: not yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moments {
    /// Lower terms were refused, and what was received is durable.
    pub sealed_us: u64,
    /// It was in office, and all members have the same state.
    pub equal_us: u64,
    /// The store was open, and the first checkpoint of the term durable on all members.
    pub opened_us: u64,
    /// It served.
    pub serving_us: u64,
}

/// The replica of a group at this server.
pub struct Group {
    pub(super) weak: Weak<Self>,
    pub(super) me: Member,
    pub(super) settings: GroupSettings,
    pub(super) links: Arc<Links>,
    pub(super) asking: Arc<Asking>,
    pub(super) host: Arc<dyn Host>,
    pub(super) volume: Arc<dyn Volume>,
    pub(super) moments: Mutex<Moments>,
    clock: Clock,
    core: Mutex<Core>,
    worker: OnceLock<Worker>,
}

/// What the machines are, and what they stand for.
pub(super) struct Core {
    pub replica: Replica,
    /// The primary, while it serves.
    pub office: Option<Office>,
    /// The primary, before it serves.
    pub candidate: Option<Candidate>,
    /// The stream that comes in.
    pub following: Option<Following>,
    /// What the file had when its end was computed last.
    pub found: Option<Found>,
    /// The log is in the file up to here, as a primary had committed it: what makes the next computation of its end short.
    pub followed: Option<Lsn>,
    /// What a candidate wants to have here.
    pub package: Option<Package>,
    /// Numbers of the questions of those that wait for a report.
    pub seals: HashMap<ServerId, u64>,
    /// The message that is being acted upon.
    pub message: Option<(Kind, Address)>,
    /// Free bytes of the device that the stream goes to, and when that was asked.
    pub free_bytes: (Option<u64>, Moment),
    /// What was seen last, if it could not be kept yet: nothing is reported before it is.
    pub unkept: Option<Stamp>,
    /// The file failed: what it has is not known, and not reported, before a whole copy has replaced it.
    pub has_failed: bool,
    /// The file here was copied, and this start of the server was not seen in the set since.
    pub is_copied: bool,
    /// The configuration that was seen last does not have this start of the server in its set.
    pub is_outside: bool,
    /// When a beat of the primary last came, or the configuration was read because none did.
    pub heard_at: Moment,
    /// When the primary was last asked about that.
    pub asked_at: Moment,
    /// Attempts that were given up here since this server last served, and until when nothing is reported because of that.
    pub given_up: (u32, Moment),
    last_question: u64,
}

impl Group {
    /// A replica with the file of `volume`, which is opened.
    ///
    /// # Errors
    /// Those of the volume; `Io`: no thread can be started.
    pub(super) fn start(
        settings: GroupSettings,
        (links, asking): (Arc<Links>, Arc<Asking>),
        (volume, host): (Arc<dyn Volume>, Arc<dyn Host>),
    ) -> Result<Arc<Self>> {
        let me = links.me();
        let seen = volume.seen()?;
        let device = volume.open()?;
        let superblock = match device.len_bytes() < SEGMENT_BYTES {
            true => None,
            false => superblock::inspect(&*device)?.0,
        };
        drop(device);
        // A file that was never used is as old as can be. One without a store that was is what a copy has left.
        let has_file = superblock.is_some() || seen.is_none();
        let stamp = seen.unwrap_or_default();
        let replica = Replica::new(me, has_file, stamp.term, stamp, settings.timing);
        let group = Arc::new_cyclic(|weak| Self {
            weak: Weak::clone(weak),
            me,
            settings,
            links,
            asking,
            host,
            volume,
            moments: Mutex::default(),
            clock: Clock::new(),
            core: Mutex::new(Core {
                replica,
                office: None,
                candidate: None,
                following: None,
                found: None,
                followed: None,
                package: None,
                seals: HashMap::new(),
                message: None,
                free_bytes: (None, Moment::default()),
                unkept: None,
                has_failed: false,
                is_copied: false,
                is_outside: false,
                heard_at: Moment::default(),
                asked_at: Moment::default(),
                given_up: (0, Moment::default()),
                last_question: 0,
            }),
            worker: OnceLock::new(),
        });
        let worker = Worker::start(Arc::downgrade(&group))?;
        let _ = group.worker.set(worker);
        Ok(group)
    }

    /// Its number.
    pub fn id(&self) -> GroupId {
        self.settings.id
    }

    /// When it came how far in its last promotion.
    pub fn moments(&self) -> Moments {
        *self.moments.lock()
    }

    /// The store with its streams, while this server is the primary.
    pub fn store(&self) -> Option<Arc<crate::equalise::Primary>> {
        let core = self.core.lock();
        core.office.as_ref().map(|office| Arc::clone(&office.store))
    }

    /// What the primary goes by: its phase and the members of the set; none if this is not the primary.
    pub fn set(&self) -> Option<(Phase, Vec<Member>)> {
        let core = self.core.lock();
        let machine = &core.office.as_ref()?.machine;
        Some((machine.phase(), machine.known().config.in_sync.to_vec()))
    }

    /// A read took its value, and asks when it may be shown: [`Host::show`] or [`Host::drop_read`] follows, maybe before this
    /// returns.
    pub fn read(&self, read: ReadId, met: Option<Met>) {
        let mut core = self.core();
        match core.office {
            Some(_) => self.primary(&mut core, primary::Event::Read { read, met }),
            None => self.host.drop_read(read),
        }
    }

    /// Makes the log durable up to `upto` on all counted members; [`Host::durable`] tells when it is.
    pub fn sync(&self, upto: Lsn) {
        if let Some(office) = &self.core().office {
            office.flusher.sync(upto);
        }
    }

    pub(super) fn core(&self) -> MutexGuard<'_, Core> {
        self.core.lock()
    }

    pub(super) fn now(&self) -> Moment {
        self.clock.now()
    }

    pub(super) fn work(&self, job: Job) {
        if let Some(worker) = self.worker.get() {
            worker.put(job);
        }
    }

    /// Tells the machine of the replica.
    pub(super) fn replica(&self, core: &mut Core, event: replica::Event) {
        let mut actions = Vec::new();
        core.replica.on(self.now(), event, &mut actions);
        for action in actions {
            self.do_for_replica(core, action);
        }
    }

    /// Tells the machine of the primary, if there is one.
    pub(super) fn primary(&self, core: &mut Core, event: primary::Event) {
        let Some(office) = &mut core.office else {
            return;
        };
        let mut actions = Vec::new();
        let (before, version) = (office.machine.phase(), office.machine.known().version);
        office.machine.on(self.now(), event, &mut actions);
        let after = office.machine.phase();
        if office.machine.known().version != version && after != Phase::Deposed {
            let known = office.machine.known();
            let set: Vec<u32> = known.config.in_sync.iter().map(|m| m.server.0).collect();
            tracing::info!(group = self.id().0, ?set, "the set of a group has changed");
            self.host.configured(known);
        }
        let mirror = Arc::clone(office.store.mirror());
        if before != after && after == Phase::Frozen {
            mirror.freeze();
        }
        for action in actions {
            self.do_for_primary(core, action);
        }
        if before != after && before == Phase::Frozen {
            mirror.thaw();
        }
    }

    /// An answer of the coordinator.
    pub(super) fn answered(&self, asker: Asker, ticket: Ticket, answer: Answer) {
        let mut core = self.core();
        match asker {
            Asker::Replica(_) => {
                let read = match &answer {
                    Answer::Read(known) => Some((known.stamp(), known.config.has(self.me))),
                    _ => None,
                };
                self.replica(&mut core, replica::Event::Answer(ticket, answer));
                // Not what the machine takes for out of date.
                if let Some((stamp, is_member)) = read
                    && core.replica.seen() == stamp
                {
                    self.saw_set(&mut core, is_member);
                }
            }
            // What became of it is read.
            Asker::GivingUp(_) => self.replica(&mut core, replica::Event::Look),
            Asker::Primary(_, term) => {
                let is_it = |office: &Office| office.machine.term() == term;
                if core.office.as_ref().is_some_and(is_it) {
                    self.primary(&mut core, primary::Event::Answer(ticket, answer));
                }
            }
            Asker::Master(_) => {}
        }
    }

    /// The configuration may have changed.
    pub(super) fn look(&self) {
        let mut core = self.core();
        self.replica(&mut core, replica::Event::Look);
        self.primary(&mut core, primary::Event::Look);
    }

    /// Time passed. These starts of servers have a session with the coordinator.
    pub(super) fn tick(&self, live: &[Member]) {
        let mut core = self.core();
        if let Some(stamp) = core.unkept {
            self.keep(&mut core, stamp);
        }
        self.look_at_space(&mut core);
        self.sample(&mut core);
        self.look_after_office(&mut core);
        self.replica(&mut core, replica::Event::Tick);
        self.fail_without_session(&mut core, live);
        self.primary(&mut core, primary::Event::Tick);
        self.look_if_unheard(&mut core);
        self.ask_if_outside(&mut core);
    }

    /// The latest configuration has this start of the server in its set, or not.
    fn saw_set(&self, core: &mut Core, is_member: bool) {
        core.is_outside = !is_member;
        if is_member && std::mem::take(&mut core.is_copied) {
            self.work(Box::new(|group, files| {
                if let Err(error) = files.settle(group) {
                    tracing::warn!(%error, "the file before the copy cannot be removed yet");
                    group.core().is_copied = true;
                }
            }));
        }
    }

    /// Persists what was seen, before anything that follows. If that fails it is tried again from time to time.
    pub(super) fn keep(&self, core: &mut Core, stamp: Stamp) {
        let kept = self.volume.keep_seen(stamp);
        if let Err(error) = &kept
            && core.unkept.is_none()
        {
            tracing::error!(%error, "the latest configuration cannot be kept");
        }
        core.unkept = kept.is_err().then_some(stamp);
    }

    /// Sends a control message with a number of its own, which an answer repeats.
    pub(super) fn ask(&self, core: &mut Core, to: Member, term: Term, message: &Control) {
        core.last_question += 1;
        let number = core.last_question;
        self.tell(to, (term, number), message);
    }

    /// Sends a control message to a start of a server.
    pub(super) fn tell(&self, to: Member, (term, number): (Term, u64), message: &Control) {
        let address = Address {
            group: self.id(),
            term,
            number,
        };
        let packet = message.encode(&address);
        self.links.send(to.server, Some(to.process), packet);
    }

    /// The same to whatever start of it there is.
    pub(super) fn tell_server(&self, to: ServerId, (term, number): (Term, u64), message: &Control) {
        let address = Address {
            group: self.id(),
            term,
            number,
        };
        self.links.send(to, None, message.encode(&address));
    }

    /// Something failed at the file. If that was the device, a flush that succeeds later says nothing of what was written
    /// before.
    pub(super) fn fail(&self, core: &mut Core, error: &Error, what: &str) {
        tracing::error!(%error, group = self.id().0, "{what}");
        core.has_failed |= matches!(error.kind(), ErrorKind::Io | ErrorKind::Poisoned);
    }

    /// Notes a moment of a promotion.
    pub(super) fn note(&self, set: impl FnOnce(&mut Moments, u64)) {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        let now_us = since.map_or(0, |since| since.as_micros() as u64);
        set(&mut self.moments.lock(), now_us);
    }

    /// Ends everything here, as a crash would.
    pub(super) fn end(&self) {
        let mut core = self.core();
        self.abandon(&mut core, "the server ends");
        let following = core.following.take();
        drop(core);
        if let Some(following) = following {
            following.follower.stop();
        }
        if let Some(worker) = self.worker.get() {
            worker.end();
        }
    }
}
