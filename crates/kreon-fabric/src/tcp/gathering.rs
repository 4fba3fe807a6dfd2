//! Many links that one thread serves: a set of their sockets and bells in the kernel.

use std::any::Any;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use kreon_base::{Error, Result};
use parking_lot::Mutex;

use super::connection::{Connection, TcpLink};
use super::waiting::{Bell, Sockets, Token};
use crate::gathering::{Gathering, LinkName};
use crate::link::{Event, Link};

/// The token of the gathering's own bell. Those of a connection are [`socket_token`] and the one behind it.
const OWN_BELL: Token = 0;

/// Many links that one thread serves. Who polls reads the sockets, as with a link alone.
pub(super) struct TcpGathering {
    sockets: Sockets,
    /// Somebody is to look at what is fresh, or to return.
    bell: Bell,
    seats: Mutex<Seats>,
    /// What the kernel told, for the one who polls.
    ready: Mutex<Vec<Token>>,
}

/// A link in the gathering.
#[derive(Clone)]
struct Seat {
    number: u64,
    name: LinkName,
    connection: Arc<Connection>,
    /// Keeps the link open, and its files.
    _link: Arc<dyn Link>,
}

#[derive(Default)]
struct Seats {
    by_number: HashMap<u64, Seat>,
    numbers: HashMap<LinkName, u64>,
    /// They may have told something before the kernel was asked.
    fresh: Vec<u64>,
    last_number: u64,
}

impl Seats {
    fn take(&mut self, number: u64) -> Option<Seat> {
        let seat = self.by_number.remove(&number)?;
        self.numbers.remove(&seat.name);
        Some(seat)
    }
}

fn socket_token(number: u64) -> Token {
    number << 1
}

impl TcpGathering {
    pub(super) fn new() -> Result<Self> {
        let (sockets, bell) = (Sockets::new()?, Bell::new()?);
        sockets.keep(&bell, OWN_BELL)?;
        Ok(Self {
            sockets,
            bell,
            seats: Mutex::default(),
            ready: Mutex::default(),
        })
    }

    fn watch(&self, seat: &Seat) -> Result<()> {
        let (socket, bell) = seat.connection.sources();
        self.sockets.keep(socket, socket_token(seat.number))?;
        let kept = self.sockets.keep(bell, socket_token(seat.number) + 1);
        if kept.is_err() {
            self.sockets.remove(socket);
        }
        kept
    }

    fn forget(&self, seat: Option<Seat>) {
        if let Some(seat) = seat {
            let (socket, bell) = seat.connection.sources();
            self.sockets.remove(socket);
            self.sockets.remove(bell);
        }
    }

    /// Hands out what a link has to tell.
    fn serve(&self, number: u64, is_readable: bool, out: &mut Vec<(LinkName, Event)>) {
        let seat = self.seats.lock().by_number.get(&number).cloned();
        let Some(seat) = seat else {
            return;
        };
        let mut events = Vec::new();
        if let Err(error) = seat.connection.look(is_readable, &mut events) {
            // It told its end to somebody else, before it came here.
            events.push(Event::Closed(error));
        }
        let is_over = matches!(events.last(), Some(Event::Closed(_)));
        out.extend(events.into_iter().map(|event| (seat.name, event)));
        if is_over {
            let seat = self.seats.lock().take(number);
            self.forget(seat);
        }
    }
}

impl Gathering for TcpGathering {
    fn add(&self, name: LinkName, link: Arc<dyn Link>) -> Result<()> {
        let any: &dyn Any = &*link;
        let Some(TcpLink(connection)) = any.downcast_ref() else {
            return Err(Error::invalid("a link of another fabric"));
        };
        let connection = connection.clone();
        let mut seats = self.seats.lock();
        let of_link = |seat: &Seat| Arc::ptr_eq(&seat.connection, &connection);
        if seats.numbers.contains_key(&name) || seats.by_number.values().any(of_link) {
            return Err(Error::invalid("a link that comes twice"));
        }
        seats.last_number += 1;
        let seat = Seat {
            number: seats.last_number,
            name,
            connection,
            _link: link,
        };
        self.watch(&seat)?;
        seats.fresh.push(seat.number);
        seats.numbers.insert(name, seat.number);
        seats.by_number.insert(seat.number, seat);
        drop(seats);
        self.bell.ring();
        Ok(())
    }

    fn remove(&self, name: LinkName) {
        let mut seats = self.seats.lock();
        let number = seats.numbers.get(&name).copied();
        let seat = number.and_then(|number| seats.take(number));
        drop(seats);
        self.forget(seat);
    }

    fn poll(&self, out: &mut Vec<(LinkName, Event)>, patience: Duration) -> Result<()> {
        let start = Instant::now();
        let Some(mut ready) = self.ready.try_lock_for(patience) else {
            return Ok(());
        };
        let before = out.len();
        loop {
            ready.clear();
            let left = patience.saturating_sub(start.elapsed());
            self.sockets.wait(&mut ready, Some(left))?;
            let is_called = ready.contains(&OWN_BELL);
            if is_called {
                self.bell.silence();
                let fresh = std::mem::take(&mut self.seats.lock().fresh);
                fresh.into_iter().for_each(|n| self.serve(n, true, out));
            }
            for token in ready.iter().filter(|token| **token != OWN_BELL) {
                self.serve(token >> 1, token & 1 == 0, out);
            }
            if is_called || out.len() > before || left.is_zero() {
                return Ok(());
            }
        }
    }

    fn wake(&self) {
        self.bell.ring();
    }
}
