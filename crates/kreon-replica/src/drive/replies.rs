//! Replies that wait until the log is safe up to their position.

use std::collections::BTreeMap;

use kreon_base::Lsn;

/// Replies in the order of the log. So no thread waits for one: workers append, put the reply here and go on.
#[derive(Debug)]
pub struct Replies<T> {
    waiting: BTreeMap<Lsn, Vec<T>>,
    upto: Lsn,
}

impl<T> Default for Replies<T> {
    fn default() -> Self {
        Self {
            waiting: BTreeMap::new(),
            upto: Lsn(0),
        }
    }
}

impl<T> Replies<T> {
    /// A reply to a write that ends at `end`; it comes back if it may leave at once.
    pub fn put(&mut self, end: Lsn, reply: T) -> Option<T> {
        if end <= self.upto {
            return Some(reply);
        }
        self.waiting.entry(end).or_default().push(reply);
        None
    }

    /// All that ends up to `upto` may leave: appended to `out`, in the order of the log.
    pub fn release(&mut self, upto: Lsn, out: &mut Vec<T>) {
        self.upto = self.upto.max(upto);
        while let Some(first) = self.waiting.first_entry()
            && *first.key() <= self.upto
        {
            out.append(&mut first.remove());
        }
    }

    /// The office is over: all that waits, whose outcome nobody knows. What comes in the next one waits anew.
    pub fn end(&mut self) -> Vec<T> {
        self.upto = Lsn(0);
        std::mem::take(&mut self.waiting)
            .into_values()
            .flatten()
            .collect()
    }

    /// How many wait.
    pub fn len(&self) -> usize {
        self.waiting.values().map(Vec::len).sum()
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_leave_in_the_order_of_the_log_and_not_before_it_is_safe() {
        let mut replies = Replies::default();
        assert_eq!(replies.put(Lsn(30), 'c'), None);
        assert_eq!(replies.put(Lsn(10), 'a'), None);
        assert_eq!(replies.put(Lsn(20), 'b'), None);
        assert_eq!(replies.put(Lsn(20), 'B'), None);
        let mut out = Vec::new();
        replies.release(Lsn(9), &mut out);
        assert!(out.is_empty());
        replies.release(Lsn(29), &mut out);
        assert_eq!(out, ['a', 'b', 'B']);
        assert_eq!(
            replies.put(Lsn(29), 'd'),
            Some('d'),
            "a late one leaves at once"
        );
        replies.release(Lsn(5), &mut out);
        assert_eq!((out.len(), replies.len()), (3, 1), "nothing is taken back");
    }

    #[test]
    fn nothing_of_an_office_leaves_in_the_next() {
        let mut replies = Replies::default();
        replies.release(Lsn(100), &mut Vec::new());
        replies.put(Lsn(200), 1);
        assert_eq!(replies.end(), [1]);
        assert_eq!(replies.put(Lsn(50), 2), None);
        assert!(!replies.is_empty());
    }
}
