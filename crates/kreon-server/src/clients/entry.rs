//! One connection as others see it.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::time::Instant;

use parking_lot::Mutex;

use super::mailbox::Mailbox;

/// What a connection is for, as `CLIENT LIST TYPE` and `CLIENT KILL TYPE` choose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClientKind {
    Normal,
    PubSub,
}

/// What the connection's own thread writes and others read. Figures of one connection may be of different moments.
#[derive(Debug)]
pub(crate) struct ClientEntry {
    /// Never used again.
    pub id: u64,
    /// Where it came from, and where to: an address, or the path of a Unix socket.
    pub address: String,
    pub local_address: String,
    pub since: Instant,
    pub name: Mutex<String>,
    /// Name and version of the client's library.
    pub library: Mutex<(String, String)>,
    /// Milliseconds after `since` of the last request, or of the last piece of a reply that it took.
    pub active_ms: AtomicU64,
    pub db: AtomicUsize,
    /// Version of the protocol.
    pub resp: AtomicU32,
    pub channels: AtomicUsize,
    pub patterns: AtomicUsize,
    /// Commands of the open transaction; -1: there is none.
    pub queued: AtomicI64,
    pub watched: AtomicUsize,
    pub input_bytes: AtomicUsize,
    pub output_bytes: AtomicUsize,
    /// Its command waits for other clients.
    pub is_waiting: Arc<AtomicBool>,
    /// Requests of it are being served, and it is not its turn to read.
    pub is_served: AtomicBool,
    pub is_evictable: AtomicBool,
    /// Name of the last command.
    pub command: Mutex<&'static str>,
    pub mailbox: Mailbox,
}

impl ClientEntry {
    pub(crate) fn new(
        id: u64,
        (address, local_address): (String, String),
        mailbox: Mailbox,
    ) -> Self {
        Self {
            id,
            address,
            local_address,
            since: Instant::now(),
            name: Mutex::default(),
            library: Mutex::default(),
            active_ms: AtomicU64::new(0),
            db: AtomicUsize::new(0),
            resp: AtomicU32::new(2),
            channels: AtomicUsize::new(0),
            patterns: AtomicUsize::new(0),
            queued: AtomicI64::new(-1),
            watched: AtomicUsize::new(0),
            input_bytes: AtomicUsize::new(0),
            output_bytes: AtomicUsize::new(0),
            is_waiting: Arc::default(),
            is_served: false.into(),
            is_evictable: true.into(),
            command: Mutex::new("NULL"),
            mailbox,
        }
    }

    pub(crate) fn kind(&self) -> ClientKind {
        let subscriptions = [&self.channels, &self.patterns];
        match subscriptions
            .iter()
            .any(|count| count.load(Ordering::Relaxed) > 0)
        {
            true => ClientKind::PubSub,
            false => ClientKind::Normal,
        }
    }

    /// Seconds since its last request.
    pub(crate) fn idle_s(&self, now: Instant) -> u64 {
        let age = now.saturating_duration_since(self.since).as_millis() as u64;
        age.saturating_sub(self.active_ms.load(Ordering::Relaxed)) / 1000
    }

    /// A line of `CLIENT LIST`, with its end.
    pub(crate) fn line(&self, now: Instant) -> String {
        let number = |field: &AtomicUsize| field.load(Ordering::Relaxed);
        let (input, output) = (number(&self.input_bytes), number(&self.output_bytes));
        let waiting = self.mailbox.waiting_bytes();
        let library = self.library.lock().clone();
        let mut line = format!(
            "id={} addr={} laddr={} fd=-1 name={} age={} idle={} flags={} db={} sub={} psub={}",
            self.id,
            self.address,
            self.local_address,
            self.name.lock(),
            now.saturating_duration_since(self.since).as_secs(),
            self.idle_s(now),
            self.flags(),
            number(&self.db),
            number(&self.channels),
            number(&self.patterns),
        );
        let _ = writeln!(
            line,
            " ssub=0 multi={} watch={} qbuf={input} qbuf-free=0 argv-mem=0 multi-mem=0 rbs={output} rbp={output} obl={output} \
             oll=0 omem={waiting} tot-mem={} events=r cmd={} user=default redir=-1 resp={} lib-name={} lib-ver={}",
            self.queued.load(Ordering::Relaxed),
            number(&self.watched),
            input + output + waiting,
            self.command.lock(),
            self.resp.load(Ordering::Relaxed),
            library.0,
            library.1,
        );
        line
    }

    /// The letters of Redis: `P` subscriber, `x` transaction, `b` waits, `e` never disconnected for memory, `N` none.
    fn flags(&self) -> String {
        let flags = [
            (self.kind() == ClientKind::PubSub, 'P'),
            (self.queued.load(Ordering::Relaxed) >= 0, 'x'),
            (self.is_waiting.load(Ordering::Relaxed), 'b'),
            (!self.is_evictable.load(Ordering::Relaxed), 'e'),
        ];
        let set: String = flags
            .iter()
            .filter_map(|(is_set, letter)| is_set.then_some(letter))
            .collect();
        match set.is_empty() {
            true => "N".to_owned(),
            false => set,
        }
    }
}
