//! `SUBSCRIBE` and its like.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

use bytes::Bytes;

use super::run::Answer;
use super::state::Session;
use crate::clients::Message;
use crate::reply::{CommandError, Reply};

/// Channels and patterns of one connection.
#[derive(Debug, Default)]
pub(super) struct Subscriptions {
    channels: BTreeSet<Bytes>,
    patterns: BTreeSet<Bytes>,
}

impl Subscriptions {
    pub(super) fn is_empty(&self) -> bool {
        self.channels.is_empty() && self.patterns.is_empty()
    }

    fn len(&self) -> i64 {
        (self.channels.len() + self.patterns.len()) as i64
    }
}

/// Bytes of all names that one connection may subscribe to.
const NAMES_BYTES_MAX: usize = 64 << 20;

impl Session {
    pub(super) fn subscribe(&mut self, args: &[Bytes]) -> Answer {
        self.add(args, "subscribe", |session, name| {
            session.shared.channels.subscribe(name, &session.entry);
            session.subscriptions.channels.insert(name.clone());
        })
    }

    pub(super) fn subscribe_patterns(&mut self, args: &[Bytes]) -> Answer {
        self.add(args, "psubscribe", |session, name| {
            session
                .shared
                .channels
                .subscribe_pattern(name, &session.entry);
            session.subscriptions.patterns.insert(name.clone());
        })
    }

    fn add(&mut self, args: &[Bytes], kind: &'static str, one: fn(&mut Self, &Bytes)) -> Answer {
        let names = args.get(1..).unwrap_or_default();
        let mine = &self.subscriptions;
        let held = mine.channels.iter().chain(&mine.patterns).map(Bytes::len);
        let bytes = held.sum::<usize>() + names.iter().map(Bytes::len).sum::<usize>();
        if bytes > NAMES_BYTES_MAX {
            return CommandError::new("ERR too many subscriptions").into();
        }
        let mut replies = Vec::with_capacity(names.len());
        for name in names {
            one(self, &Bytes::copy_from_slice(name));
            replies.push(told(kind, Some(name.clone()), self.subscriptions.len()));
        }
        self.show_subscriptions();
        Answer::Many(replies)
    }

    pub(super) fn unsubscribe(&mut self, args: &[Bytes]) -> Answer {
        let all: Vec<Bytes> = self.subscriptions.channels.iter().cloned().collect();
        self.remove(args, all, "unsubscribe", |session, name| {
            if session.subscriptions.channels.remove(name) {
                session.shared.channels.unsubscribe(name, session.entry.id);
            }
        })
    }

    pub(super) fn unsubscribe_patterns(&mut self, args: &[Bytes]) -> Answer {
        let all: Vec<Bytes> = self.subscriptions.patterns.iter().cloned().collect();
        self.remove(args, all, "punsubscribe", |session, name| {
            if session.subscriptions.patterns.remove(name) {
                let id = session.entry.id;
                session.shared.channels.unsubscribe_pattern(name, id);
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
    ) -> Answer {
        let named = args.get(1..).unwrap_or_default();
        let names = if named.is_empty() { &all } else { named };
        let mut replies = Vec::with_capacity(names.len().max(1));
        for name in names {
            one(self, name);
            replies.push(told(kind, Some(name.clone()), self.subscriptions.len()));
        }
        if names.is_empty() {
            replies.push(told(kind, None, self.subscriptions.len()));
        }
        self.show_subscriptions();
        Answer::Many(replies)
    }

    /// Ends all of them without a reply.
    pub(super) fn unsubscribe_all(&mut self) {
        if !self.subscriptions.is_empty() {
            self.unsubscribe(&[]);
            self.unsubscribe_patterns(&[]);
        }
    }

    fn show_subscriptions(&self) {
        let (mine, entry) = (&self.subscriptions, &self.entry);
        entry.channels.store(mine.channels.len(), Ordering::Relaxed);
        entry.patterns.store(mine.patterns.len(), Ordering::Relaxed);
    }

    pub(super) fn publish(&self, args: &[Bytes]) -> Reply {
        match args {
            [_, channel, payload] => {
                Reply::Int(self.shared.channels.publish(channel, payload) as i64)
            }
            _ => Reply::Error(CommandError::new("ERR syntax error")),
        }
    }

    /// `PUBSUB CHANNELS [pattern]`, `NUMSUB [channel ...]`, `NUMPAT`.
    pub(super) fn pubsub(&self, args: &[Bytes]) -> Reply {
        let channels = &self.shared.channels;
        match args {
            [_, what, pattern @ ..] if what.eq_ignore_ascii_case(b"channels") => {
                let names = channels.names(pattern.first());
                Reply::Array(names.into_iter().map(Reply::Bulk).collect())
            }
            [_, what, names @ ..] if what.eq_ignore_ascii_case(b"numsub") => {
                let each = names.iter().flat_map(|name| {
                    let count = channels.subscribers(name) as i64;
                    [Reply::Bulk(name.clone()), Reply::Int(count)]
                });
                Reply::Array(each.collect())
            }
            [_, what] if what.eq_ignore_ascii_case(b"numpat") => {
                Reply::Int(channels.patterns() as i64)
            }
            _ => Reply::Error(crate::admin::unknown_subcommand(args)),
        }
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
