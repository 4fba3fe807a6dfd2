//! What a task asks for, and how that went.

use std::sync::Arc;

use kreon_base::{PageBytes, PageNo, Priority, Result};

use super::ticket::Ticket;

/// A [`check`](crate::PageRequest::check) that outlives its maker.
pub type PageCheck = Arc<dyn Fn(&PageBytes) -> Result<()> + Send + Sync>;

/// Consecutive pages that a task wants.
#[derive(Clone)]
pub struct PagesWanted {
    /// The first.
    pub first: PageNo,
    /// How many.
    pub count: u32,
    /// Eviction priority of those that have to be loaded.
    pub priority: Priority,
    /// As in [`PageRequest`](crate::PageRequest); `None`: any bytes will do.
    pub check: Option<PageCheck>,
}

/// How [`Mapping::begin`](crate::Mapping::begin) went.
#[derive(Debug)]
pub enum Begun {
    /// All is resident, or was a moment ago.
    Ready,
    /// The waker will be called; the outcome is in the ticket, if there is one.
    Pending(Option<Ticket>),
    /// There is no way to load them in the background just now.
    Refused,
}

impl PagesWanted {
    pub(super) fn pages(&self) -> impl Iterator<Item = PageNo> + use<> {
        let first = self.first.0;
        (first..first + u64::from(self.count)).map(PageNo)
    }
}
