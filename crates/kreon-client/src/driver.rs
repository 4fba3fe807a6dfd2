//! The threads of a client: what they share, and what they do for calls.

use std::io::IoSlice;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use kreon_base::ErrorKind as BaseKind;
use kreon_fabric::{Event as LinkEvent, Fabric, Gathering, Link, LinkName, PeerId};
use kreon_wire::{Address as Place, Control, Kind as PacketKind, Packet, ServerId};
use parking_lot::{Condvar, Mutex, MutexGuard};

use crate::call::{CallId, Kind};
use crate::deed::{Asking, Deed, Parcel};
use crate::error::{Error, ErrorKind, Result};
use crate::moment::{Moment, Timing};
use crate::session::{Found, Reader, Session};
use crate::slot::{Answer, Budget, Slot};
use crate::state::State;

/// How often time passes for calls under way.
const TICK: Duration = Duration::from_millis(10);

/// What a call costs beside its body.
const CALL_BYTES: usize = 512;

/// What whoever receives has.
struct Receiving {
    events: Vec<(LinkName, LinkEvent)>,
    ticked: Instant,
}

/// What the threads of a client share.
pub(crate) struct Driver {
    state: Mutex<State>,
    map_read: Condvar,
    /// The right to receive: of a caller who waits, or of the thread that does it when none does.
    receiving: Mutex<Receiving>,
    /// Calls that have not ended.
    under_way: AtomicUsize,
    resting: Mutex<()>,
    called: Condvar,
    fabric: Arc<dyn Fabric>,
    gathering: Arc<dyn Gathering>,
    me: PeerId,
    budget: Budget,
    pub(crate) session: Session,
    timing: Timing,
    begun: Instant,
    last_call: AtomicU64,
    /// The server that took the last order to the master; 0 if none did.
    master: AtomicU32,
    is_over: AtomicBool,
}

impl Driver {
    pub(crate) fn new(
        fabric: Arc<dyn Fabric>,
        session: Session,
        me: PeerId,
        timing: Timing,
        memory_bytes: usize,
    ) -> Result<Self> {
        Ok(Self {
            state: Mutex::new(State::new(timing)),
            map_read: Condvar::new(),
            receiving: Mutex::new(Receiving {
                events: Vec::new(),
                ticked: Instant::now(),
            }),
            under_way: AtomicUsize::new(0),
            resting: Mutex::default(),
            called: Condvar::new(),
            gathering: fabric.gathering()?,
            fabric,
            me,
            budget: Budget::new(memory_bytes),
            session,
            timing,
            begun: Instant::now(),
            last_call: AtomicU64::new(0),
            master: AtomicU32::new(0),
            is_over: AtomicBool::new(false),
        })
    }

    pub(crate) fn now(&self) -> Moment {
        let us = self.begun.elapsed().as_micros();
        Moment(u64::try_from(us).unwrap_or(u64::MAX))
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// How long a call may take.
    pub(crate) const fn limit(&self) -> Duration {
        Duration::from_micros(self.timing.limit_us)
    }

    /// How long a server may take for one answer.
    pub(crate) const fn patience(&self) -> Duration {
        Duration::from_micros(self.timing.patience_us)
    }

    /// How long somebody rests who was refused.
    pub(crate) const fn rest(&self) -> Duration {
        Duration::from_micros(self.timing.rest_us)
    }

    /// Who took the last order to the master.
    pub(crate) fn master(&self) -> Option<ServerId> {
        let server = self.master.load(Ordering::Relaxed);
        (server != 0).then_some(ServerId(server))
    }

    pub(crate) fn set_master(&self, server: ServerId) {
        self.master.store(server.0, Ordering::Relaxed);
    }

    /// Bytes of calls under way.
    pub(crate) fn used_bytes(&self) -> usize {
        self.budget.used_bytes()
    }

    /// Waits until the map was read anew: what was there at the call is known then.
    pub(crate) fn refresh(&self) -> Result<()> {
        let until = Instant::now() + self.limit();
        let number = self.session.read_map(true);
        let mut state = self.state.lock();
        while state.last_reading < number {
            if self.map_read.wait_until(&mut state, until).timed_out() {
                let text = "the coordinator does not answer in time";
                return Err(Error::new(ErrorKind::Unavailable, text));
            }
        }
        state.map_failed.clone().map_or(Ok(()), Err)
    }

    fn asking(&self, kind: PacketKind, body: Arc<Vec<u8>>) -> Result<(CallId, Asking, Arc<Slot>)> {
        let bytes = CALL_BYTES + body.capacity();
        self.budget.take(bytes, self.limit())?;
        let slot = Arc::new(Slot::default());
        let asking = Asking {
            kind,
            body,
            slot: slot.clone(),
            bytes,
        };
        self.under_way.fetch_add(1, Ordering::SeqCst);
        let id = CallId(self.last_call.fetch_add(1, Ordering::Relaxed) + 1);
        Ok((id, asking, slot))
    }

    /// Begins a call of whoever is the primary for `key`, for which nobody waits yet; waits if too much is under way.
    pub(crate) fn begin(
        self: &Arc<Self>,
        kind: Kind,
        place: (&str, &[u8]),
        body: Vec<u8>,
    ) -> Result<Arc<Slot>> {
        let slot = self.send_call(kind, place, body)?;
        self.have_received();
        Ok(slot)
    }

    /// Begins a write of several keys as if at `since`, so that several attempts have one time. A server that has not all
    /// of them is its answer.
    pub(crate) fn begin_part(
        self: &Arc<Self>,
        since: Moment,
        place: (&str, &[u8]),
        body: Arc<Vec<u8>>,
    ) -> Result<Arc<Slot>> {
        let (id, asking, slot) = self.asking(PacketKind::Request, body)?;
        let mut deeds = Vec::new();
        self.state
            .lock()
            .begin_part(since, id, place, asking, &mut deeds);
        self.carry_out(deeds);
        self.have_received();
        Ok(slot)
    }

    /// Makes a call of whoever is the primary for `key`, and waits for the answer.
    pub(crate) fn call(
        self: &Arc<Self>,
        kind: Kind,
        place: (&str, &[u8]),
        body: Vec<u8>,
    ) -> Result<Answer> {
        let slot = self.send_call(kind, place, body)?;
        self.wait(&slot)
    }

    fn send_call(
        self: &Arc<Self>,
        kind: Kind,
        place: (&str, &[u8]),
        body: Vec<u8>,
    ) -> Result<Arc<Slot>> {
        let (id, asking, slot) = self.asking(PacketKind::Request, Arc::new(body))?;
        let mut deeds = Vec::new();
        self.state
            .lock()
            .begin(self.now(), id, kind, place, asking, &mut deeds);
        self.carry_out(deeds);
        Ok(slot)
    }

    /// Waits for an answer, and receives meanwhile if nobody else does: so the answer wakes who waits for it, and no other
    /// thread before.
    fn wait(self: &Arc<Self>, slot: &Slot) -> Result<Answer> {
        loop {
            let received = self.receiving.try_lock();
            let limit = match received {
                Some(mut receiving) => {
                    while !slot.is_filled() && self.receive(&mut receiving, TICK) {}
                    drop(receiving);
                    if self.under_way.load(Ordering::SeqCst) > 0 {
                        self.have_received();
                    }
                    Duration::ZERO
                }
                // Should who receives end just now, the next one is not far.
                None => TICK,
            };
            if let Some(answer) = slot.wait_for(limit) {
                return answer;
            }
            if self.is_over.load(Ordering::SeqCst) {
                return slot.wait(); // it was ended, or is just now
            }
        }
    }

    /// Has the thread receive that does so when nobody waits.
    fn have_received(&self) {
        drop(self.resting.lock());
        self.called.notify_one();
    }

    /// Begins a call on this link and no other; a read that may be lost with it.
    pub(crate) fn begin_on(
        self: &Arc<Self>,
        link: LinkName,
        kind: PacketKind,
        to: Place,
        body: Vec<u8>,
        limit: Duration,
    ) -> Result<Arc<Slot>> {
        let (id, asking, slot) = self.asking(kind, Arc::new(body))?;
        let us = u64::try_from(limit.as_micros()).unwrap_or(u64::MAX);
        let until = Moment(self.now().0.saturating_add(us));
        let mut deeds = Vec::new();
        self.state
            .lock()
            .begin_bound(id, link, until, to, asking, &mut deeds);
        self.carry_out(deeds);
        self.have_received();
        Ok(slot)
    }

    /// A link to a server; connects if there is none.
    pub(crate) fn link_to(self: &Arc<Self>, server: ServerId) -> Result<LinkName> {
        let until = Instant::now() + self.patience();
        loop {
            let mut state = self.state.lock();
            if let Some(link) = state.seats.link_to(server) {
                return Ok(link);
            }
            let Some(address) = state.seats.address(server) else {
                let text = format!("no server {}", server.0);
                return Err(Error::new(ErrorKind::NotFound, text));
            };
            let is_mine = state.is_to_connect(server);
            drop(state);
            if is_mine {
                let link = self.fabric.connect(&address, &self.me, self.patience());
                let failed = link.as_ref().err().cloned();
                self.connected(server, link);
                if let Some(error) = failed {
                    let error = error.within(format!("server {}", server.0));
                    return Err(Error::new(ErrorKind::Unavailable, error.to_string()));
                }
            } else if Instant::now() >= until {
                let text = format!("no link to server {} in time", server.0);
                return Err(Error::new(ErrorKind::Unavailable, text));
            } else {
                // Somebody else connects.
                std::thread::sleep(Duration::from_millis(1));
            }
        }
    }

    fn connected(self: &Arc<Self>, server: ServerId, link: kreon_base::Result<Arc<dyn Link>>) {
        let mut deeds = Vec::new();
        self.state
            .lock()
            .on_connected(self.now(), server, link, send, &mut deeds);
        self.carry_out(deeds);
    }

    fn carry_out(self: &Arc<Self>, deeds: Vec<Deed>) {
        let mut deeds = deeds;
        while !deeds.is_empty() {
            let mut next = Vec::new();
            for deed in deeds {
                self.carry_out_one(deed, &mut next);
            }
            deeds = next;
        }
    }

    fn carry_out_one(self: &Arc<Self>, deed: Deed, next: &mut Vec<Deed>) {
        match deed {
            Deed::Send(name, link, parcel) => self.send(name, &*link, &parcel, next),
            Deed::Connect(server, address) => {
                let driver = self.clone();
                let connect = move || {
                    let link = driver
                        .fabric
                        .connect(&address, &driver.me, driver.patience());
                    driver.connected(server, link);
                };
                let thread = std::thread::Builder::new().name("kreon-connect".into());
                if let Err(error) = thread.spawn(connect) {
                    let error = kreon_base::Error::io("begin a thread", error);
                    self.state
                        .lock()
                        .on_connected(self.now(), server, Err(error), send, next);
                }
            }
            Deed::Listen(name, link) => {
                if self.gathering.add(name, link.clone()).is_err() {
                    link.close("the system has no room for it");
                    self.state.lock().on_closed(self.now(), name, next);
                }
            }
            Deed::Close(link, why) => link.close(why),
            Deed::ReadMap { synced } => drop(self.session.read_map(synced)),
            Deed::Fill(slot, answer, bytes) => {
                self.under_way.fetch_sub(1, Ordering::SeqCst);
                self.budget.give(bytes);
                slot.fill(answer);
            }
        }
    }

    fn send(&self, name: LinkName, link: &dyn Link, parcel: &Parcel, next: &mut Vec<Deed>) {
        let Err(error) = send(link, parcel) else {
            return;
        };
        let (now, mut state) = (self.now(), self.state.lock());
        if error.kind() == BaseKind::Busy && state.seats.wait_for_room(name, parcel) {
            // The room may have come in between.
            return state.flush(now, name, send, next);
        }
        state.not_sent(now, parcel, next);
    }

    /// Serves links and clocks until the client is closed: for a thread of its own.
    pub(crate) fn run(self: &Arc<Self>) {
        /// Callers learn even of a panic.
        struct Ended<'a>(&'a Arc<Driver>);
        impl Drop for Ended<'_> {
            fn drop(&mut self) {
                self.0.close();
            }
        }
        let _ended = Ended(self);
        while !self.is_over.load(Ordering::SeqCst) {
            let mut is_served = false;
            if let Some(mut receiving) = self.receiving.try_lock() {
                is_served = self.under_way.load(Ordering::SeqCst) > 0;
                let patience = if is_served { TICK } else { Duration::ZERO };
                if !self.receive(&mut receiving, patience) {
                    return;
                }
            }
            let mut rest = self.resting.lock();
            if !is_served || self.under_way.load(Ordering::SeqCst) == 0 {
                // A caller who waits receives by itself.
                self.called.wait_for(&mut rest, TICK);
            }
        }
    }

    /// Receives once, and lets time pass; `false` if that is over.
    fn receive(self: &Arc<Self>, receiving: &mut Receiving, patience: Duration) -> bool {
        let Receiving { events, ticked } = receiving;
        if self.is_over.load(Ordering::SeqCst) || self.gathering.poll(events, patience).is_err() {
            return false;
        }
        let mut deeds = Vec::new();
        if !events.is_empty() {
            let (now, mut state) = (self.now(), self.state.lock());
            for (name, event) in events.drain(..) {
                match event {
                    LinkEvent::Packet(packet) => state.on_packet(now, name, packet, &mut deeds),
                    LinkEvent::Room => state.flush(now, name, send, &mut deeds),
                    LinkEvent::Closed(_) => state.on_closed(now, name, &mut deeds),
                }
            }
            drop(state);
            self.carry_out(std::mem::take(&mut deeds));
        }
        if ticked.elapsed() >= TICK {
            *ticked = Instant::now();
            self.state.lock().tick(self.now(), &mut deeds);
            self.carry_out(deeds);
        }
        true
    }

    /// Ends all calls and links.
    pub(crate) fn close(self: &Arc<Self>) {
        self.is_over.store(true, Ordering::SeqCst);
        self.session.end();
        let mut deeds = Vec::new();
        self.state.lock().close(&mut deeds);
        self.carry_out(deeds);
        self.gathering.wake();
        self.have_received();
    }
}

/// Sends a packet on a link.
fn send(link: &dyn Link, parcel: &Parcel) -> kreon_base::Result<()> {
    match parcel.kind {
        PacketKind::Status => link.send(&[IoSlice::new(&Control::Status.encode(&parcel.to))]),
        _ => link.send(&Packet::request(&parcel.to, &parcel.body).parts()),
    }
}

impl Reader for Arc<Driver> {
    fn read(&self, number: u64, found: Result<Found>) {
        let mut deeds = Vec::new();
        self.state
            .lock()
            .on_map(self.now(), (number, found), &mut deeds);
        self.map_read.notify_all();
        self.carry_out(deeds);
    }
}
