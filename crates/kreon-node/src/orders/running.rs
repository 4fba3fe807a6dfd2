//! Which orders are being carried out: so many at a time, and one about each group or table.

use std::sync::Arc;

use kreon_sync::{AtomicBool, Condvar, Mutex, Ordering};
use kreon_wire::GroupId;

/// Orders that are carried out at a time; more are refused. Each has a thread.
const RUNNING_MAX: usize = 24;

/// What an order changes: two about the same thing would be in each other's way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum About {
    Group(GroupId),
    Table(String),
    /// It is carried out at once.
    Nothing,
}

impl About {
    fn told(&self) -> String {
        match self {
            Self::Group(group) => format!("group {}", group.0),
            Self::Table(table) => format!("table {table:?}"),
            Self::Nothing => "nothing".to_owned(),
        }
    }
}

/// The orders that are being carried out.
#[derive(Default)]
pub struct Running {
    about: Mutex<Vec<About>>,
    ended: Condvar,
    is_over: AtomicBool,
}

impl Running {
    /// The right to carry out an order; why there is none otherwise.
    pub fn begin(self: &Arc<Self>, about: About) -> Result<Turn, String> {
        let mut all = self.about.lock();
        if self.is_over() {
            return Err("the server ends".to_owned());
        }
        if all.len() >= RUNNING_MAX {
            return Err(format!("{RUNNING_MAX} orders are being carried out"));
        }
        if about != About::Nothing && all.contains(&about) {
            let text =
                "another order is being carried out: give this one again when that has ended";
            return Err(format!("{}: {text}", about.told()));
        }
        all.push(about.clone());
        let running = Arc::clone(self);
        Ok(Turn { running, about })
    }

    /// Whoever carries one out is to give it up.
    pub fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }

    /// No order begins any more; waits until those that run are given up.
    pub fn end(&self) {
        let mut all = self.about.lock();
        self.is_over.store(true, Ordering::Release);
        while !all.is_empty() {
            self.ended.wait(&mut all);
        }
    }
}

/// An order is being carried out until this is dropped.
pub struct Turn {
    running: Arc<Running>,
    about: About,
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut all = self.running.about.lock();
        if let Some(index) = all.iter().position(|about| *about == self.about) {
            all.swap_remove(index);
        }
        drop(all);
        self.running.ended.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_order_about_a_group_runs_at_a_time_and_not_too_many_in_all() {
        let running = Arc::new(Running::default());
        let first = running.begin(About::Group(GroupId(1))).ok().unwrap();
        let _other = running.begin(About::Group(GroupId(2))).ok().unwrap();
        let refused = running.begin(About::Group(GroupId(1))).err().unwrap();
        assert!(refused.starts_with("group 1: "), "{refused}");
        drop(first);
        let first = running.begin(About::Group(GroupId(1)));
        let more = (2..RUNNING_MAX).map(|_| running.begin(About::Nothing).ok().unwrap());
        let more: Vec<_> = more.collect();
        assert!(running.begin(About::Table("t".into())).is_err());
        drop((first, more));
        assert!(running.begin(About::Table("t".into())).is_ok());
    }
}
