//! The threads that serve clients: few, each with many links.

use std::collections::HashMap;
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use kreon_base::{Error, Result};
use kreon_fabric::{Event, Fabric, Gathering, Link, LinkName, Together};
use kreon_replica::drive::Clients;
use kreon_sync::{AtomicBool, AtomicU64, Mutex, Ordering};

use crate::answer::{Desk, Shipping};
use crate::client::ClientLink;

/// A thread looks so often for links that are to be closed.
const PATIENCE: Duration = Duration::from_millis(500);

/// The threads that serve clients.
pub struct Pool {
    desk: Arc<Desk>,
    seats: Vec<Arc<Seat>>,
    last: AtomicU64,
    is_over: Arc<AtomicBool>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

/// What one of them serves.
struct Seat {
    gathering: Arc<dyn Gathering>,
    clients: Mutex<HashMap<LinkName, Arc<ClientLink>>>,
}

impl Pool {
    /// Starts them.
    ///
    /// # Errors
    /// `Io`: the system has no room.
    pub fn start(desk: &Arc<Desk>, fabric: &dyn Fabric) -> Result<Arc<Self>> {
        let count = desk.usage.limits.threads;
        let seat = |_| {
            let gathering = fabric.gathering()?;
            Ok(Arc::new(Seat {
                gathering,
                clients: Mutex::default(),
            }))
        };
        let pool = Arc::new(Self {
            desk: Arc::clone(desk),
            seats: (0..count).map(seat).collect::<Result<_>>()?,
            last: AtomicU64::new(0),
            is_over: Arc::default(),
            threads: Mutex::default(),
        });
        for seat in &pool.seats {
            let (desk, seat) = (Arc::clone(desk), Arc::clone(seat));
            let is_over = Arc::clone(&pool.is_over);
            let thread = Builder::new().name("kreon-clients".into());
            let thread = thread.spawn(move || seat.serve(&desk, &is_over));
            let thread = thread.map_err(|error| Error::io("start a thread for clients", error))?;
            pool.threads.lock().push(thread);
        }
        Ok(pool)
    }

    /// Takes no request any more, and closes the links.
    pub fn end(&self) {
        self.is_over.store(true, Ordering::Release);
        self.seats.iter().for_each(|seat| seat.gathering.wake());
        for thread in self.threads.lock().drain(..) {
            if thread.join().is_err() {
                tracing::error!("a thread for clients had panicked");
            }
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.end();
    }
}

impl Clients for Pool {
    fn linked(&self, link: Arc<dyn Link>) {
        let number = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        let name = LinkName(number);
        let seat = self.seats.get(number as usize % self.seats.len().max(1));
        let Some(seat) = seat.filter(|_| !self.is_over.load(Ordering::Acquire)) else {
            return link.close("the server ends");
        };
        let client = ClientLink::new(name, Arc::clone(&link), &self.desk.usage);
        seat.clients.lock().insert(name, client);
        if let Err(error) = seat.gathering.add(name, link) {
            tracing::warn!(%error, "a client is not served");
            if let Some(client) = seat.clients.lock().remove(&name) {
                client.close("no room for a client");
            }
        }
    }
}

impl Seat {
    fn serve(&self, desk: &Desk, is_over: &AtomicBool) {
        let mut events = Vec::new();
        let mut judged = Instant::now();
        while !is_over.load(Ordering::Acquire) {
            if let Err(error) = self.gathering.poll(&mut events, PATIENCE) {
                tracing::error!(%error, "clients cannot be waited for");
                kreon_sync::sleep(PATIENCE);
            }
            // Answers leave together, and short writes go on to the members together, and first.
            let _together = Together::begin();
            let _shipping = Shipping::begin();
            // Requests of one client mostly come together.
            let mut last: Option<Arc<ClientLink>> = None;
            for (name, event) in events.drain(..) {
                if last.as_ref().is_none_or(|client| client.name != name) {
                    last = self.clients.lock().get(&name).cloned();
                }
                if let Some(client) = &last {
                    self.on_event(desk, client, event);
                }
            }
            let now = Instant::now();
            if now.saturating_duration_since(judged) >= PATIENCE {
                judged = now;
                self.judge(desk, now);
            }
        }
        for (_, client) in self.clients.lock().drain() {
            client.close("the server ends");
        }
    }

    fn on_event(&self, desk: &Desk, client: &Arc<ClientLink>, event: Event) {
        match event {
            Event::Packet(packet) => {
                if let Err(violation) = desk.on_packet(client, &packet) {
                    tracing::warn!(?violation, "a client sends what it must not");
                    desk.usage.violated(violation);
                    client.close("a request that is not right");
                    self.forget(desk, client);
                }
            }
            Event::Room => client.on_room(),
            Event::Closed(why) => {
                tracing::debug!(%why, "a client has gone");
                self.forget(desk, client);
            }
        }
    }

    fn forget(&self, desk: &Desk, client: &ClientLink) {
        self.gathering.remove(client.name);
        self.clients.lock().remove(&client.name);
        for hosted in desk.groups() {
            hosted.snapshots.close_of(client);
        }
    }

    /// Closes what nobody reads or uses.
    fn judge(&self, desk: &Desk, now: Instant) {
        let clients: Vec<_> = self.clients.lock().values().cloned().collect();
        clients.iter().for_each(|client| client.judge(now));
        let idle = Duration::from_millis(desk.usage.limits.snapshot_idle_ms.into());
        for hosted in desk.groups() {
            hosted.snapshots.close_idle(now, idle);
        }
    }
}
