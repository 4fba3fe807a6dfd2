//! The memory that a command may take for what it gathers: the elements of its reply, or what it looks for among them.

use std::sync::Arc;

use crate::budget::{Budget, Share};
use crate::reply::CommandError;

/// The error of a reply that would be too long.
const TOO_LONG: CommandError = CommandError::new("ERR the reply is longer than --output-max");
/// The error of a command for which all connections together leave no room.
const FULL: CommandError = CommandError::new("ERR the buffers of all connections are full");

/// So many bytes are taken of the budget at once: most replies take none.
const STEP_BYTES: usize = 64 << 10;

/// What a command has gathered.
#[derive(Debug, Default)]
pub(crate) struct Room {
    filled: Filled,
    share: Option<Share>,
}

/// How much of a room is taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Filled {
    /// By the reply.
    reply_bytes: usize,
    /// By anything.
    bytes: usize,
}

/// Who may gather how much.
#[derive(Clone, Debug)]
pub(crate) struct Rooms {
    /// Of one reply.
    pub reply_bytes_max: usize,
    /// Of all connections.
    pub budget: Arc<Budget>,
}

impl Rooms {
    /// Any command may gather any number of bytes.
    pub(crate) fn unlimited() -> Self {
        Self {
            reply_bytes_max: usize::MAX,
            budget: Budget::new(usize::MAX),
        }
    }
}

impl Room {
    /// Counts `bytes` that a reply grows by.
    ///
    /// # Errors
    /// The reply is longer than one may be, or all connections together hold as much as they may.
    pub(crate) fn reply_grows(&mut self, rooms: &Rooms, bytes: usize) -> Result<(), CommandError> {
        self.filled.reply_bytes = self.filled.reply_bytes.saturating_add(bytes);
        match self.filled.reply_bytes > rooms.reply_bytes_max {
            true => Err(TOO_LONG),
            false => self.grows(rooms, bytes),
        }
    }

    /// Counts `bytes` that are gathered for something else than the reply.
    ///
    /// # Errors
    /// All connections together hold as much as they may.
    pub(crate) fn grows(&mut self, rooms: &Rooms, bytes: usize) -> Result<(), CommandError> {
        self.filled.bytes = self.filled.bytes.saturating_add(bytes);
        let held = self.share.as_ref().map_or(0, Share::bytes);
        if self.filled.bytes.saturating_sub(held) < STEP_BYTES {
            return Ok(());
        }
        let share = self.share.get_or_insert_with(|| Share::of(&rooms.budget));
        match share.hold(self.filled.bytes) {
            true => Ok(()),
            false => Err(FULL),
        }
    }

    pub(crate) fn filled(&self) -> Filled {
        self.filled
    }

    /// What was gathered since is given up.
    pub(crate) fn back_to(&mut self, before: Filled) {
        self.filled = before;
        if let Some(share) = &mut self.share {
            share.hold(before.bytes.min(share.bytes()));
        }
    }

    /// What is held of the budget, until it is dropped.
    pub(crate) fn into_share(self) -> Option<Share> {
        self.share
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reply_has_its_own_limit_and_all_of_them_have_one_together() {
        let rooms = Rooms {
            reply_bytes_max: 1 << 20,
            budget: Budget::new(3 << 20),
        };
        let (mut one, mut other) = (Room::default(), Room::default());
        for _ in 0..1 << 10 {
            one.reply_grows(&rooms, 1 << 10).unwrap();
        }
        assert_eq!(one.reply_grows(&rooms, 1), Err(TOO_LONG));
        other.grows(&rooms, 2 << 20).unwrap();
        assert_eq!(other.grows(&rooms, STEP_BYTES), Err(FULL));
        let share = one.into_share().unwrap();
        assert_eq!(rooms.budget.taken_bytes(), 3 << 20);
        other.back_to(Filled::default());
        assert_eq!(rooms.budget.taken_bytes(), 1 << 20);
        drop((share, other));
        assert_eq!(rooms.budget.taken_bytes(), 0);
    }

    #[test]
    fn short_reply_takes_nothing_of_the_budget() {
        let rooms = Rooms {
            reply_bytes_max: 1 << 20,
            budget: Budget::new(0),
        };
        let mut room = Room::default();
        room.reply_grows(&rooms, STEP_BYTES - 1).unwrap();
        assert!(room.reply_grows(&rooms, 1).is_err());
    }
}
