//! The link to a client, and the answers that it does not take at once.

use std::collections::VecDeque;
use std::io::IoSlice;
use std::sync::Arc;
use std::time::{Duration, Instant};

use kreon_base::{Error, ErrorKind};
use kreon_fabric::{Link, LinkName};
use kreon_sync::{AtomicBool, AtomicUsize, Mutex, Ordering};
use kreon_wire::limits::REQUEST_BYTES_MAX;
use kreon_wire::{Address, Packet};

use super::usage::Usage;

/// Answers that wait beyond the limit of a client before it is closed: the one that led beyond it, and those that say that it
/// is busy.
const BEYOND_BYTES: usize = REQUEST_BYTES_MAX as usize + (1 << 20);

/// Bytes that a waiting answer takes besides its body.
const ANSWER_BYTES: usize = 64;

/// A client's link.
pub struct ClientLink {
    pub name: LinkName,
    link: Arc<dyn Link>,
    pub usage: Arc<Usage>,
    /// Under way, answers that wait included.
    pub bytes: AtomicUsize,
    /// Snapshots and scans that are open.
    pub snapshots: AtomicUsize,
    /// Answers wait: later ones go behind them.
    is_blocked: AtomicBool,
    outbox: Mutex<Outbox>,
}

#[derive(Default)]
struct Outbox {
    waiting: VecDeque<(Address, Vec<u8>)>,
    bytes: usize,
    /// Since when the client has taken nothing.
    since: Option<Instant>,
    is_closed: bool,
}

impl ClientLink {
    pub fn new(name: LinkName, link: Arc<dyn Link>, usage: &Arc<Usage>) -> Arc<Self> {
        usage.links.fetch_add(1, Ordering::Relaxed);
        Arc::new(Self {
            name,
            link,
            usage: Arc::clone(usage),
            bytes: AtomicUsize::new(0),
            snapshots: AtomicUsize::new(0),
            is_blocked: AtomicBool::new(false),
            outbox: Mutex::default(),
        })
    }

    pub(super) fn take(&self, bytes: usize) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.usage.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn give_back(&self, bytes: usize) {
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
        self.usage.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Sends an answer, or keeps it until the client takes it. Never waits.
    pub fn send(&self, to: &Address, body: &[u8]) {
        if !self.is_blocked.load(Ordering::Acquire) && !is_busy(&self.pass(to, body)) {
            return;
        }
        let mut outbox = self.outbox.lock();
        if outbox.is_closed {
            return;
        }
        let bytes = body.len() + ANSWER_BYTES;
        outbox.waiting.push_back((*to, body.to_vec()));
        outbox.bytes += bytes;
        outbox.since.get_or_insert_with(Instant::now);
        self.take(bytes);
        self.is_blocked.store(true, Ordering::Release);
        // The room that it waited for may have been told meanwhile.
        self.drain(&mut outbox);
        if outbox.bytes > self.usage.limits.link_bytes_max + BEYOND_BYTES {
            drop(outbox);
            self.close_unread();
        }
    }

    /// A packet of another kind, if the link takes it: it may be lost.
    pub fn tell(&self, packet: &[u8]) {
        let _ = self.link.send(&[IoSlice::new(packet)]);
    }

    fn pass(&self, to: &Address, body: &[u8]) -> Result<(), Error> {
        let packet = Packet::reply(to, body);
        self.link.send(&packet.parts())
    }

    /// The link takes packets again.
    pub fn on_room(&self) {
        self.drain(&mut self.outbox.lock());
    }

    fn drain(&self, outbox: &mut Outbox) {
        while let Some((to, body)) = outbox.waiting.front() {
            // An answer that a link refuses for good, or that has ended, is lost with it.
            if is_busy(&self.pass(to, body)) {
                return;
            }
            let bytes = body.len() + ANSWER_BYTES;
            outbox.waiting.pop_front();
            outbox.bytes -= bytes;
            outbox.since = Some(Instant::now());
            self.give_back(bytes);
        }
        outbox.since = None;
        self.is_blocked.store(false, Ordering::Release);
    }

    /// Closes it if its client has read nothing for too long.
    pub fn judge(&self, now: Instant) {
        let patience = Duration::from_millis(self.usage.limits.unread_ms.into());
        let since = self.outbox.lock().since;
        if since.is_some_and(|since| now.saturating_duration_since(since) > patience) {
            self.close_unread();
        }
    }

    fn close_unread(&self) {
        let mut outbox = self.outbox.lock();
        if !outbox.is_closed {
            self.usage.closed_unread.fetch_add(1, Ordering::Relaxed);
            self.empty(&mut outbox);
            drop(outbox);
            self.link.close("its client reads no answers");
        }
    }

    /// Ends it.
    pub fn close(&self, why: &str) {
        self.empty(&mut self.outbox.lock());
        self.link.close(why);
    }

    fn empty(&self, outbox: &mut Outbox) {
        outbox.is_closed = true;
        outbox.waiting.clear();
        outbox.since = None;
        self.give_back(std::mem::take(&mut outbox.bytes));
    }
}

impl Drop for ClientLink {
    fn drop(&mut self) {
        self.empty(&mut self.outbox.lock());
        self.usage.links.fetch_sub(1, Ordering::Relaxed);
    }
}

fn is_busy(sent: &Result<(), Error>) -> bool {
    matches!(sent, Err(error) if error.kind() == ErrorKind::Busy)
}
