//! The thread that serves all connections of a process: it accepts, lets peers prove themselves, writes what senders left,
//! and sends the rest of what was closed. It never waits for anything but sockets, and never works on storage.
//!
//! It does not read for links: who polls does, so that one wake-up and not two brings a packet to its reader.

use std::collections::HashMap;
use std::io::ErrorKind as Io;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::connection::Standing;
use super::greeting::Greeting;
use super::registry::Registry;
use super::waiting::{Bell, READ, Token};
use crate::fabric::Welcome;

/// How long nothing is accepted after the system had no more files or memory for it.
const PAUSE: Duration = Duration::from_millis(100);

/// What other threads ask of it.
pub(super) enum Command {
    Listen(Token, TcpListener, Arc<dyn Welcome>),
    Unlisten(Token),
    /// Close all links, and end when the rest of them is sent.
    Stop,
}

/// Where others leave their commands.
pub(super) struct Mailbox {
    commands: Mutex<Vec<Command>>,
    bell: Bell,
    token: Token,
}

impl Mailbox {
    pub(super) fn new(registry: &Registry) -> kreon_base::Result<Self> {
        let bell = Bell::new()?;
        let token = registry.next_token();
        registry.around.sockets.add(&bell, token)?;
        registry.around.sockets.watch(&bell, token, READ)?;
        Ok(Self {
            commands: Mutex::default(),
            bell,
            token,
        })
    }

    pub(super) fn send(&self, command: Command) {
        self.commands.lock().push(command);
        self.bell.ring();
    }
}

struct Listener {
    socket: TcpListener,
    judge: Arc<dyn Welcome>,
    /// Nothing is accepted: too many have not proven themselves, or the system has no room.
    is_paused: bool,
}

/// The state of the thread.
pub(super) struct Progress {
    registry: Arc<Registry>,
    mailbox: Arc<Mailbox>,
    listeners: HashMap<Token, Listener>,
    greetings: HashMap<Token, Greeting>,
    lingering: HashMap<Token, Instant>,
    paused_until: Option<Instant>,
    is_stopping: bool,
}

impl Progress {
    pub(super) fn new(registry: Arc<Registry>, mailbox: Arc<Mailbox>) -> Self {
        Self {
            registry,
            mailbox,
            listeners: HashMap::new(),
            greetings: HashMap::new(),
            lingering: HashMap::new(),
            paused_until: None,
            is_stopping: false,
        }
    }

    /// Serves until it is told to stop, or the kernel no longer lets it wait.
    pub(super) fn run(mut self) {
        let mut ready = Vec::new();
        while !self.is_stopping || !self.lingering.is_empty() {
            ready.clear();
            let patience = self.next_deadline();
            let patience = patience.map(|at| at.saturating_duration_since(Instant::now()));
            let sockets = &self.registry.around.sockets;
            if sockets.wait(&mut ready, patience).is_err() {
                break;
            }
            ready.iter().for_each(|token| self.serve(*token));
            self.expire(Instant::now());
        }
        for connection in self.registry.all() {
            self.forget(connection.token);
        }
    }

    fn next_deadline(&self) -> Option<Instant> {
        let greetings = self.greetings.values().map(|greeting| greeting.until);
        let lingering = self.lingering.values().copied();
        greetings.chain(lingering).chain(self.paused_until).min()
    }

    fn serve(&mut self, token: Token) {
        if token == self.mailbox.token {
            self.obey();
        } else if self.listeners.contains_key(&token) {
            self.accept(token);
        } else if let Some(greeting) = self.greetings.remove(&token) {
            if let Some(greeting) = greeting.progress(&self.registry) {
                self.greetings.insert(token, greeting);
            }
            self.resume_listeners();
        } else {
            self.progress(token);
        }
    }

    fn obey(&mut self) {
        self.mailbox.bell.silence();
        let sockets = &self.registry.around.sockets;
        let _ = sockets.watch(&self.mailbox.bell, self.mailbox.token, READ);
        let commands = std::mem::take(&mut *self.mailbox.commands.lock());
        for command in commands {
            match command {
                Command::Listen(token, socket, judge) => {
                    let listener = Listener {
                        socket,
                        judge,
                        is_paused: false,
                    };
                    self.listeners.insert(token, listener);
                    self.accept(token);
                }
                Command::Unlisten(token) => {
                    self.listeners.remove(&token);
                }
                Command::Stop => self.stop(),
            }
        }
    }

    fn stop(&mut self) {
        self.is_stopping = true;
        self.listeners.clear();
        self.greetings.clear();
        for connection in self.registry.all() {
            connection.close("the fabric was dropped");
            self.progress(connection.token);
        }
    }

    /// Accepts what waits, up to the limit of those that have not proven who they are.
    fn accept(&mut self, token: Token) {
        let Some(listener) = self.listeners.get_mut(&token) else {
            return;
        };
        listener.is_paused = false;
        loop {
            if self.greetings.len() >= self.registry.settings.unproven_max {
                listener.is_paused = true;
                return;
            }
            match listener.socket.accept() {
                Ok((socket, _)) => match Greeting::new(socket, &listener.judge, &self.registry) {
                    Ok(greeting) => drop(self.greetings.insert(greeting.token(), greeting)),
                    Err(_) => self.registry.around.counts.not_finished.add_one(),
                },
                Err(e) if e.kind() == Io::WouldBlock => break,
                Err(e) if matches!(e.kind(), Io::Interrupted | Io::ConnectionAborted) => {}
                Err(_) => {
                    listener.is_paused = true;
                    self.paused_until = Some(Instant::now() + PAUSE);
                    return;
                }
            }
        }
        let sockets = &self.registry.around.sockets;
        let _ = sockets.watch(&listener.socket, token, READ);
    }

    fn resume_listeners(&mut self) {
        let listeners = self.listeners.iter();
        let paused = listeners.filter(|(_, listener)| listener.is_paused);
        let tokens: Vec<Token> = paused.map(|(token, _)| *token).collect();
        tokens.into_iter().for_each(|token| self.accept(token));
    }

    fn progress(&mut self, token: Token) {
        let Some(connection) = self.registry.get(token) else {
            self.lingering.remove(&token);
            return;
        };
        match connection.progress(Instant::now()) {
            Standing::Open => {}
            Standing::Lingering(until) => drop(self.lingering.insert(token, until)),
            Standing::Over => self.forget(token),
        }
    }

    fn forget(&mut self, token: Token) {
        self.lingering.remove(&token);
        let connection = self.registry.forget(token);
        connection.iter().for_each(|connection| connection.end());
    }

    /// What has had its time.
    fn expire(&mut self, now: Instant) {
        let is_slow = |_: &Token, greeting: &mut Greeting| greeting.until <= now;
        let mut slow = 0;
        for dropped in self.greetings.extract_if(is_slow) {
            // Counted before the peer can see the end.
            self.registry.around.counts.not_finished.add_one();
            drop(dropped);
            slow += 1;
        }
        let lingering = self.lingering.iter();
        let over = lingering.filter(|(_, until)| **until <= now);
        let over: Vec<Token> = over.map(|(token, _)| *token).collect();
        over.into_iter().for_each(|token| self.progress(token));
        let is_paused = self.paused_until.is_some_and(|until| until > now);
        if !is_paused && (slow > 0 || self.paused_until.take().is_some()) {
            self.resume_listeners();
        }
    }
}
