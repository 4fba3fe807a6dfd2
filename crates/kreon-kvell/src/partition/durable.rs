//! Writes that await a flush.

use std::collections::VecDeque;

use super::after::After;
use crate::format::Timestamp;
use crate::space::FlushNo;

/// Writes that are done and not yet durable, in the order of the flushes that cover them.
#[derive(Default)]
pub struct Durable {
    waiting: VecDeque<Written>,
    /// Replies among what waits: somebody waits for a flush.
    replies: usize,
}

struct Written {
    covered_by: FlushNo,
    /// Oldest timestamp in the write, if it has items.
    oldest: Option<Timestamp>,
    after: Vec<After>,
}

impl Durable {
    /// A write has ended that the flush `covered_by` will cover.
    pub fn written(&mut self, covered_by: FlushNo, oldest: Option<Timestamp>, after: Vec<After>) {
        self.replies += replies(&after);
        self.waiting.push_back(Written {
            covered_by,
            oldest,
            after,
        });
    }

    /// Adds to what waits for the write with the tombstone at `slot`; `false` if that is not here.
    pub fn follow(&mut self, is_it: impl Fn(&After) -> bool, more: After) -> bool {
        let found = self
            .waiting
            .iter_mut()
            .find(|it| it.after.iter().any(&is_it));
        let Some(written) = found else {
            return false;
        };
        self.replies += replies(&[more]);
        written.after.push(more);
        true
    }

    /// All that a successful flush made true.
    pub fn flushed(&mut self, flush: FlushNo) -> Vec<After> {
        let mut all = Vec::new();
        while let Some(first) = self.waiting.front_mut()
            && first.covered_by <= flush
        {
            self.replies -= replies(&first.after);
            all.append(&mut first.after);
            self.waiting.pop_front();
        }
        all
    }

    /// Whether somebody waits for a flush.
    pub fn has_replies(&self) -> bool {
        self.replies > 0
    }

    /// Whether a flush would make anything durable.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// The oldest timestamp that is not durable.
    pub fn oldest(&self) -> Option<Timestamp> {
        self.waiting.iter().filter_map(|it| it.oldest).min()
    }

    /// Ends all waiting: the device has failed.
    pub fn abandon(&mut self) -> Vec<After> {
        self.flushed(FlushNo::MAX)
    }
}

fn replies(after: &[After]) -> usize {
    let replies = after.iter().filter(|it| matches!(it, After::Reply(..)));
    replies.count()
}
