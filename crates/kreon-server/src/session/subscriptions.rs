//! What a connection is subscribed to.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;

use crate::clients::{ClientEntry, Message};
use crate::reply::{CommandError, Reply};
use crate::shared::Shared;

/// Channels and patterns of one connection, until it is dropped.
#[derive(Debug)]
pub(super) struct Subscriptions {
    shared: Arc<Shared>,
    entry: Arc<ClientEntry>,
    channels: BTreeSet<Bytes>,
    patterns: BTreeSet<Bytes>,
    /// What all of them take in memory, about.
    bytes: usize,
}

type Replies = Result<Vec<Reply>, CommandError>;

/// Bytes in memory of all that one connection may subscribe to.
const BYTES_MAX: usize = 64 << 20;

/// What a subscription takes in memory, about: entries of the connection and of the channel.
fn bytes_of(name: &Bytes) -> usize {
    const ENTRIES_BYTES: usize = 256;
    name.len() + ENTRIES_BYTES
}

impl Subscriptions {
    /// None yet, of the connection `entry`.
    pub(super) fn new(shared: &Arc<Shared>, entry: &Arc<ClientEntry>) -> Self {
        Self {
            shared: Arc::clone(shared),
            entry: Arc::clone(entry),
            channels: BTreeSet::new(),
            patterns: BTreeSet::new(),
            bytes: 0,
        }
    }

    /// What all of them take in memory, about.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn is_empty(&self) -> bool {
        self.channels.is_empty() && self.patterns.is_empty()
    }

    fn len(&self) -> i64 {
        (self.channels.len() + self.patterns.len()) as i64
    }

    pub(super) fn subscribe(&mut self, args: &[Bytes]) -> Replies {
        self.add(args, "subscribe", |mine, name| {
            mine.shared.channels.subscribe(name, &mine.entry);
            mine.channels.insert(name.clone())
        })
    }

    pub(super) fn subscribe_patterns(&mut self, args: &[Bytes]) -> Replies {
        self.add(args, "psubscribe", |mine, name| {
            mine.shared.channels.subscribe_pattern(name, &mine.entry);
            mine.patterns.insert(name.clone())
        })
    }

    /// `one` says whether it is new.
    fn add(
        &mut self,
        args: &[Bytes],
        kind: &'static str,
        one: fn(&mut Self, &Bytes) -> bool,
    ) -> Replies {
        let names = args.get(1..).unwrap_or_default();
        if self.bytes + names.iter().map(bytes_of).sum::<usize>() > BYTES_MAX {
            return Err(CommandError::new("ERR too many subscriptions"));
        }
        let mut replies = Vec::with_capacity(names.len());
        for name in names {
            if one(self, &Bytes::copy_from_slice(name)) {
                self.bytes += bytes_of(name);
            }
            replies.push(told(kind, Some(name.clone()), self.len()));
        }
        self.show();
        Ok(replies)
    }

    pub(super) fn unsubscribe(&mut self, args: &[Bytes]) -> Vec<Reply> {
        let all: Vec<Bytes> = self.channels.iter().cloned().collect();
        self.remove(args, all, "unsubscribe", |mine, name| {
            let was_there = mine.channels.remove(name);
            if was_there {
                mine.shared.channels.unsubscribe(name, mine.entry.id);
            }
            was_there
        })
    }

    pub(super) fn unsubscribe_patterns(&mut self, args: &[Bytes]) -> Vec<Reply> {
        let all: Vec<Bytes> = self.patterns.iter().cloned().collect();
        self.remove(args, all, "punsubscribe", |mine, name| {
            let was_there = mine.patterns.remove(name);
            if was_there {
                let id = mine.entry.id;
                mine.shared.channels.unsubscribe_pattern(name, id);
            }
            was_there
        })
    }

    /// Those that are named, or all. `one` says whether it was there.
    fn remove(
        &mut self,
        args: &[Bytes],
        all: Vec<Bytes>,
        kind: &'static str,
        one: fn(&mut Self, &Bytes) -> bool,
    ) -> Vec<Reply> {
        let named = args.get(1..).unwrap_or_default();
        let names = if named.is_empty() { &all } else { named };
        let mut replies = Vec::with_capacity(names.len().max(1));
        for name in names {
            if one(self, name) {
                self.bytes -= bytes_of(name);
            }
            replies.push(told(kind, Some(name.clone()), self.len()));
        }
        if names.is_empty() {
            replies.push(told(kind, None, self.len()));
        }
        self.show();
        replies
    }

    /// Ends all of them without a reply.
    pub(super) fn end(&mut self) {
        if !self.is_empty() {
            self.unsubscribe(&[]);
            self.unsubscribe_patterns(&[]);
        }
    }

    fn show(&self) {
        let entry = &self.entry;
        entry.channels.store(self.channels.len(), Ordering::Relaxed);
        entry.patterns.store(self.patterns.len(), Ordering::Relaxed);
    }
}

impl Drop for Subscriptions {
    fn drop(&mut self) {
        self.end();
    }
}

fn told(kind: &'static str, name: Option<Bytes>, count: i64) -> Reply {
    let name = name.map_or(Reply::Nil, Reply::Bulk);
    Reply::Push(vec![Reply::constant(kind), name, Reply::Int(count)])
}

/// A message as it is sent.
pub(crate) fn push_of(message: Message) -> Reply {
    let Message {
        pattern,
        channel,
        payload,
    } = message;
    let (channel, payload) = (Reply::Bulk(channel), Reply::Bulk(payload));
    Reply::Push(match pattern {
        Some(pattern) => {
            vec![
                Reply::constant("pmessage"),
                Reply::Bulk(pattern),
                channel,
                payload,
            ]
        }
        None => vec![Reply::constant("message"), channel, payload],
    })
}
