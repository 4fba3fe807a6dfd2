//! Subscriptions to channels and to patterns.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use parking_lot::RwLock;

use crate::clients::{ClientEntry, Message};
use crate::command::glob_matches;

type Subscribers = HashMap<u64, Arc<ClientEntry>>;

/// Who subscribed to what. Publishers share the lock; subscriptions take it for themselves.
#[derive(Debug, Default)]
pub(crate) struct Channels {
    by_name: RwLock<HashMap<Bytes, Subscribers>>,
    by_pattern: RwLock<HashMap<Bytes, Subscribers>>,
    /// Subscriptions to either, so that a publication to nobody takes no lock.
    count: AtomicUsize,
}

impl Channels {
    /// Subscribes to a channel. False: it was before.
    pub(crate) fn subscribe(&self, channel: &Bytes, entry: &Arc<ClientEntry>) -> bool {
        self.add(&self.by_name, channel, entry)
    }

    /// Subscribes to all channels that match `pattern`. False: it was before.
    pub(crate) fn subscribe_pattern(&self, pattern: &Bytes, entry: &Arc<ClientEntry>) -> bool {
        self.add(&self.by_pattern, pattern, entry)
    }

    fn add(
        &self,
        map: &RwLock<HashMap<Bytes, Subscribers>>,
        name: &Bytes,
        entry: &Arc<ClientEntry>,
    ) -> bool {
        let mut map = map.write();
        let subscribers = match map.get_mut(name) {
            Some(subscribers) => subscribers,
            // A copy: the name would keep the whole buffer that it was received in.
            None => map.entry(Bytes::copy_from_slice(name)).or_default(),
        };
        let is_new = subscribers.insert(entry.id, Arc::clone(entry)).is_none();
        if is_new {
            self.count.fetch_add(1, Ordering::SeqCst);
        }
        is_new
    }

    /// Ends a subscription to a channel.
    pub(crate) fn unsubscribe(&self, channel: &Bytes, id: u64) {
        self.remove(&self.by_name, channel, id);
    }

    /// Ends a subscription to a pattern.
    pub(crate) fn unsubscribe_pattern(&self, pattern: &Bytes, id: u64) {
        self.remove(&self.by_pattern, pattern, id);
    }

    fn remove(&self, map: &RwLock<HashMap<Bytes, Subscribers>>, name: &Bytes, id: u64) {
        let mut map = map.write();
        let Some(subscribers) = map.get_mut(name) else {
            return;
        };
        if subscribers.remove(&id).is_some() {
            self.count.fetch_sub(1, Ordering::SeqCst);
        }
        if subscribers.is_empty() {
            map.remove(name);
        }
    }

    /// Leaves `payload` to all subscribers, and returns how many they are; one who subscribed to the channel and to
    /// patterns counts for each.
    pub(crate) fn publish(&self, channel: &Bytes, payload: &Bytes) -> usize {
        if self.count.load(Ordering::SeqCst) == 0 {
            return 0;
        }
        // Copies, shared by all: slices would keep the publisher's whole buffer while somebody reads slowly.
        let channel = Bytes::copy_from_slice(channel);
        let payload = Bytes::copy_from_slice(payload);
        let mut told = 0;
        let mut tell = |pattern: Option<&Bytes>, subscribers: &Subscribers| {
            for entry in subscribers.values() {
                entry.mailbox.post(Message {
                    pattern: pattern.cloned(),
                    channel: channel.clone(),
                    payload: payload.clone(),
                });
                told += 1;
            }
        };
        if let Some(subscribers) = self.by_name.read().get(&channel) {
            tell(None, subscribers);
        }
        for (pattern, subscribers) in self.by_pattern.read().iter() {
            if glob_matches(pattern, &channel) {
                tell(Some(pattern), subscribers);
            }
        }
        told
    }

    /// The channels with subscribers, those that match `pattern` if one is given.
    pub(crate) fn names(&self, pattern: Option<&Bytes>) -> Vec<Bytes> {
        let matches = |name: &&Bytes| pattern.is_none_or(|pattern| glob_matches(pattern, name));
        self.by_name
            .read()
            .keys()
            .filter(matches)
            .cloned()
            .collect()
    }

    /// How many subscribed to a channel by its name.
    pub(crate) fn subscribers(&self, channel: &Bytes) -> usize {
        self.by_name.read().get(channel).map_or(0, HashMap::len)
    }

    /// How many patterns have subscribers.
    pub(crate) fn patterns(&self) -> usize {
        self.by_pattern.read().len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::Budget;
    use crate::clients::Mailbox;

    fn entry(id: u64) -> Arc<ClientEntry> {
        let mailbox = Mailbox::new(1 << 20, &Budget::new(usize::MAX));
        Arc::new(ClientEntry::new(id, Default::default(), mailbox))
    }

    #[test]
    fn a_message_reaches_each_subscription_that_matches_and_no_other() {
        let channels = Channels::default();
        let (one, two) = (entry(1), entry(2));
        let (news, pattern, payload) = ("news".into(), "n*".into(), "x".into());
        assert_eq!(channels.publish(&news, &payload), 0);
        assert!(channels.subscribe(&news, &one));
        assert!(!channels.subscribe(&news, &one));
        assert!(channels.subscribe_pattern(&pattern, &one));
        assert!(channels.subscribe(&"other".into(), &two));
        assert_eq!(channels.publish(&news, &payload), 2);
        let patterns: Vec<_> = one
            .mailbox
            .take(1000)
            .into_iter()
            .map(|message| message.pattern)
            .collect();
        assert_eq!(patterns, [None, Some(pattern.clone())]);
        assert!(two.mailbox.take(1000).is_empty());
        channels.unsubscribe(&news, 1);
        channels.unsubscribe_pattern(&pattern, 1);
        assert_eq!(channels.publish(&news, &payload), 0);
        assert_eq!(channels.names(None), ["other"]);
        assert_eq!(
            (channels.patterns(), channels.subscribers(&"other".into())),
            (0, 1)
        );
    }
}
