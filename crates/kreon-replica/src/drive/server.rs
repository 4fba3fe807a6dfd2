//! What all groups of a process share: links, the session with the coordinator, the clock, and the master if this server is it.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use kreon_base::{Error, Result};
use kreon_coord::Version;
use kreon_fabric::{Address, Bytes};
use kreon_sync::{AtomicBool, Mutex, Ordering, RwLock};
use kreon_wire::{
    Address as Place, Control, Frame, GroupId, Kind, Member, Reason, Role, ServerId, Stage,
    Standing, Term, Violation,
};

use super::asking::{Asker, Asking, Listener};
use super::group::{Group, GroupSettings};
use super::host::Host;
use super::links::{Links, Receiver, Wire};
use super::mastering::Mastering;
use super::of_replica::report_of;
use super::streams::hand_out;
use super::volume::Volume;
use crate::machine::{Answer, Ticket, Timing, master};

/// Machines are told so often that time passes.
const TICK: Duration = Duration::from_millis(20);

/// What a server is.
#[derive(Clone, Debug)]
pub struct ServerSettings {
    /// How long is waited for what. The same on all servers.
    pub timing: Timing,
    /// The groups that it looks after when it is the master.
    pub mastered: Vec<GroupId>,
}

/// A process of a cluster.
pub struct Server {
    links: Arc<Links>,
    asking: Arc<Asking>,
    groups: RwLock<HashMap<GroupId, Arc<Group>>>,
    mastering: Mastering,
    /// Who has a session with the coordinator, as this server's own session last told.
    live: Mutex<Arc<[Member]>>,
    is_over: AtomicBool,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Server {
    /// Begins to talk to the other servers and to the coordinator.
    ///
    /// # Errors
    /// `Io`: no threads can be started.
    pub fn start(
        settings: ServerSettings,
        links: Arc<Links>,
        asking: Arc<Asking>,
    ) -> Result<Arc<Self>> {
        let shared = (Arc::clone(&links), Arc::clone(&asking));
        let server = Arc::new(Self {
            mastering: Mastering::new(settings.mastered, shared, settings.timing),
            links,
            asking,
            groups: RwLock::default(),
            live: Mutex::new([].into()),
            is_over: AtomicBool::new(false),
            threads: Mutex::default(),
        });
        let weak: Weak<Self> = Arc::downgrade(&server);
        server.links.hand_to(weak.clone());
        server.asking.tell(weak.clone());
        let asking = Arc::clone(&server.asking);
        server.spawn("kreon-session", move || asking.run())?;
        server.spawn("kreon-clock", move || {
            while let Some(server) = weak.upgrade() {
                if server.is_over.load(Ordering::Acquire) {
                    return;
                }
                server.tick();
                drop(server);
                kreon_sync::sleep(TICK);
            }
        })?;
        Ok(server)
    }

    fn spawn(&self, name: &str, run: impl FnOnce() + Send + 'static) -> Result<()> {
        let thread = Builder::new().name(name.to_owned()).spawn(run);
        let thread = thread.map_err(|error| Error::io("start a thread of a server", error))?;
        self.threads.lock().push(thread);
        Ok(())
    }

    /// Begins to be a replica of a group.
    ///
    /// # Errors
    /// `InvalidArgument`: it is one already; those of the volume.
    pub fn add_group(
        &self,
        settings: GroupSettings,
        volume: Arc<dyn Volume>,
        host: Arc<dyn Host>,
    ) -> Result<Arc<Group>> {
        let id = settings.id;
        if self.group(id).is_some() {
            return Err(Error::invalid("a group that is here already"));
        }
        let shared = (Arc::clone(&self.links), Arc::clone(&self.asking));
        let group = Group::start(settings, shared, (volume, host))?;
        self.groups.write().insert(id, Arc::clone(&group));
        group.look();
        Ok(group)
    }

    /// A group that is here.
    pub fn group(&self, id: GroupId) -> Option<Arc<Group>> {
        self.groups.read().get(&id).cloned()
    }

    pub(super) fn take_group(&self, id: GroupId) -> Option<Arc<Group>> {
        self.groups.write().remove(&id)
    }

    pub(super) fn mastering(&self) -> &Mastering {
        &self.mastering
    }

    fn all(&self) -> Vec<Arc<Group>> {
        self.groups.read().values().cloned().collect()
    }

    /// The links to the other servers.
    pub fn links(&self) -> &Arc<Links> {
        &self.links
    }

    /// What it does for a group as the master.
    pub fn stage(&self, group: GroupId) -> Option<master::Stage> {
        self.mastering.stage(group)
    }

    /// An operator gives up what the rest of the set may have: the replica of `server` is to go on alone. With `vouched` the
    /// operator says that a process of the set has ended, and names the highest term that any replica has. Whether it is done
    /// shows in the configuration; if it is not, [`loss_is_refused`](Self::loss_is_refused) says so after the patience of a
    /// seal.
    ///
    /// # Errors
    /// `InvalidArgument`: this server is not the master.
    pub fn accept_loss(
        &self,
        group: GroupId,
        server: ServerId,
        vouched: Option<Term>,
    ) -> Result<()> {
        self.mastering.accept_loss(group, server, vouched)
    }

    /// Whether the loss that was to be accepted last was refused: the group does not wait, or nobody of its set is known to
    /// have ended.
    pub fn loss_is_refused(&self, group: GroupId) -> bool {
        self.mastering.loss_is_refused(group)
    }

    /// A group was made, or may have changed.
    pub fn look(&self) {
        self.mastering.look();
        self.all().iter().for_each(|group| group.look());
    }

    fn tick(&self) {
        let live = Arc::clone(&self.live.lock());
        self.all().iter().for_each(|group| group.tick(&live));
        self.mastering.tick();
    }

    /// Ends everything here, as a crash would: the others find out.
    pub fn end(&self) {
        self.is_over.store(true, Ordering::Release);
        self.asking.end();
        // Before their links: a primary would take its backups for failed, and leave them out of the set.
        self.all().iter().for_each(|group| group.end());
        self.links.close();
        let own = std::thread::current().id();
        for thread in self.threads.lock().drain(..) {
            if thread.thread().id() != own && thread.join().is_err() {
                tracing::error!("a thread of a server had panicked");
            }
        }
    }
}

impl Receiver for Server {
    fn control(&self, from: Member, packet: &[u8]) -> Result<(), Violation> {
        let frame = Frame::open(packet, Role::PeerControl)?;
        let (id, term) = (frame.header().group, frame.header().term);
        let number = frame.header().number;
        let message = Control::decode(&frame)?;
        let is_probed =
            matches!(message, Control::Standing(_)) && self.mastering.on_probed(id, from, number);
        match message {
            Control::Sealed { process, extent } => {
                let report = report_of(&extent);
                let from = Member { process, ..from };
                self.mastering.on(master::Event::Sealed {
                    group: id,
                    from,
                    term,
                    report,
                });
            }
            Control::Standing(standing)
                if !is_probed
                    && matches!(
                        standing.stage,
                        Stage::Serving | Stage::Frozen | Stage::Short
                    ) =>
            {
                self.mastering.on(master::Event::Serves(id, term));
            }
            Control::Refused(refused)
                if (refused.reason, refused.kind) == (Reason::LowerTerm, Kind::Seal) =>
            {
                self.mastering.on(master::Event::Refused(id, refused.term));
            }
            // Which start of this server runs is told of a group that is not here, too.
            Control::Status if self.group(id).is_none() => {
                let place = Place {
                    group: id,
                    term,
                    number,
                };
                let standing = Control::Standing(Standing::absent()).encode(&place);
                self.links.send(from.server, Some(from.process), standing);
            }
            _ => {}
        }
        self.group(id)
            .map_or(Ok(()), |group| group.control(from, &frame))
    }

    fn stream(&self, wire: &Arc<Wire>, packets: &[Bytes]) -> Result<(), Violation> {
        hand_out(wire, packets, |id| self.group(id))
    }

    fn room(&self, wire: &Arc<Wire>) {
        if wire.peer().role == Role::PeerStream {
            self.all().iter().for_each(|group| group.room());
        }
    }

    fn closed(&self, wire: &Arc<Wire>, why: &Error) {
        tracing::debug!(%why, peer = ?wire.peer(), "a link has ended");
        if wire.peer().role == Role::PeerStream {
            let peer = wire.peer().member;
            let all = self.all();
            all.iter().for_each(|group| group.stream_closed(peer, why));
        }
    }

    fn unreachable(&self, server: ServerId) {
        let all = self.all();
        all.iter().for_each(|group| group.unreachable(server));
    }
}

impl Listener for Server {
    fn answered(&self, asker: Asker, ticket: Ticket, answer: Answer) {
        match (asker, self.group(asker.group())) {
            (Asker::Master(group), _) => self.mastering.answered(group, ticket, answer),
            (_, Some(group)) => group.answered(asker, ticket, answer),
            (_, None) => {}
        }
    }

    fn look(&self, group: GroupId) {
        self.mastering.on(master::Event::Look(group));
        if let Some(group) = self.group(group) {
            group.look();
        }
    }

    fn begun(&self) {
        self.look();
    }

    fn live(&self, live: Vec<Member>) {
        let now: Arc<[Member]> = live.as_slice().into();
        let before = std::mem::replace(&mut *self.live.lock(), Arc::clone(&now));
        for gone in before.iter().filter(|member| !now.contains(member)) {
            tracing::info!(server = gone.server.0, "the session of a server is gone");
        }
        self.mastering.on(master::Event::Live(live));
    }

    fn address(&self, server: ServerId, address: Address) {
        self.links.learn_address(server, address);
    }

    fn elected(&self, fence: Version) {
        self.mastering.elected(fence);
    }

    fn unseated(&self) {
        self.mastering.on(master::Event::Unseated);
    }
}
