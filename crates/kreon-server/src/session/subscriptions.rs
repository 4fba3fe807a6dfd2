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
}

type Replies = Result<Vec<Reply>, CommandError>;

/// Bytes of all names that one connection may subscribe to.
const NAMES_BYTES_MAX: usize = 64 << 20;

impl Subscriptions {
    /// None yet, of the connection `entry`.
    pub(super) fn new(shared: &Arc<Shared>, entry: &Arc<ClientEntry>) -> Self {
        Self {
            shared: Arc::clone(shared),
            entry: Arc::clone(entry),
            channels: BTreeSet::new(),
            patterns: BTreeSet::new(),
        }
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
            mine.channels.insert(name.clone());
        })
    }

    pub(super) fn subscribe_patterns(&mut self, args: &[Bytes]) -> Replies {
        self.add(args, "psubscribe", |mine, name| {
            mine.shared.channels.subscribe_pattern(name, &mine.entry);
            mine.patterns.insert(name.clone());
        })
    }

    fn add(&mut self, args: &[Bytes], kind: &'static str, one: fn(&mut Self, &Bytes)) -> Replies {
        let names = args.get(1..).unwrap_or_default();
        let held = self.channels.iter().chain(&self.patterns).map(Bytes::len);
        let bytes = held.sum::<usize>() + names.iter().map(Bytes::len).sum::<usize>();
        if bytes > NAMES_BYTES_MAX {
            return Err(CommandError::new("ERR too many subscriptions"));
        }
        let mut replies = Vec::with_capacity(names.len());
        for name in names {
            one(self, &Bytes::copy_from_slice(name));
            replies.push(told(kind, Some(name.clone()), self.len()));
        }
        self.show();
        Ok(replies)
    }

    pub(super) fn unsubscribe(&mut self, args: &[Bytes]) -> Vec<Reply> {
        let all: Vec<Bytes> = self.channels.iter().cloned().collect();
        self.remove(args, all, "unsubscribe", |mine, name| {
            if mine.channels.remove(name) {
                mine.shared.channels.unsubscribe(name, mine.entry.id);
            }
        })
    }

    pub(super) fn unsubscribe_patterns(&mut self, args: &[Bytes]) -> Vec<Reply> {
        let all: Vec<Bytes> = self.patterns.iter().cloned().collect();
        self.remove(args, all, "punsubscribe", |mine, name| {
            if mine.patterns.remove(name) {
                let id = mine.entry.id;
                mine.shared.channels.unsubscribe_pattern(name, id);
            }
        })
    }

    /// Those that are named, or all.
    fn remove(
        &mut self,
        args: &[Bytes],
        all: Vec<Bytes>,
        kind: &'static str,
        one: fn(&mut Self, &Bytes),
    ) -> Vec<Reply> {
        let named = args.get(1..).unwrap_or_default();
        let names = if named.is_empty() { &all } else { named };
        let mut replies = Vec::with_capacity(names.len().max(1));
        for name in names {
            one(self, name);
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
