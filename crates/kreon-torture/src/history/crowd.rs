//! Who uses the stores: how many clients, and what of transactions they do.

use kreon_engine::Isolation;
use kreon_judge::Call;
use kreon_sim::Dice;

use crate::counts::Counts;

/// What all rounds of a run have in common. By default each is as its seed says.
#[derive(Clone, Copy, Debug, Default)]
pub struct Crowd {
    /// Clients of each round.
    pub clients: Option<u32>,
    /// Most calls are transactions, all stores lose their power, and the run ends when so many commits of each isolation
    /// were judged.
    pub transactions: Option<u64>,
    /// The isolation of all transactions.
    pub isolation: Option<Isolation>,
}

const ISOLATIONS: [Isolation; 2] = [Isolation::Snapshot, Isolation::Serializable];

impl Crowd {
    /// The isolation of a transaction.
    pub fn any_isolation(&self, dice: &mut Dice) -> Isolation {
        let rolled = match dice.below(if self.transactions.is_some() { 2 } else { 3 }) {
            0 => Isolation::Snapshot,
            _ => Isolation::Serializable,
        };
        self.isolation.unwrap_or(rolled)
    }

    /// Whether as many commits were judged as were asked for.
    pub fn is_content(&self, counts: &Counts) -> bool {
        let Some(wanted) = self.transactions else {
            return false;
        };
        let mut asked = ISOLATIONS.into_iter();
        asked.all(|isolation| {
            let judged = counts.tried.get(commit_of(isolation)).copied();
            self.isolation.is_some_and(|only| only != isolation) || judged.unwrap_or(0) >= wanted
        })
    }
}

/// What the call of a commit is named.
pub fn commit_of(isolation: Isolation) -> &'static str {
    match isolation {
        Isolation::Snapshot => "commit, snapshot",
        Isolation::Serializable => "commit, serializable",
    }
}

/// Whether `call` is a commit whose outcome nobody learned.
pub fn is_commit_in_doubt(call: &Call) -> bool {
    call.returned.is_none() && ISOLATIONS.iter().any(|of| commit_of(*of) == call.what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_ends_with_the_commits_of_the_isolations_that_were_asked_for() {
        let mut counts = Counts::default();
        counts.count("commit, snapshot");
        let both = Crowd {
            transactions: Some(1),
            ..Crowd::default()
        };
        let one = Crowd {
            isolation: Some(Isolation::Snapshot),
            ..both
        };
        assert!(one.is_content(&counts) && !both.is_content(&counts));
        counts.count("commit, serializable");
        assert!(both.is_content(&counts));
        assert!(!Crowd::default().is_content(&counts));
    }
}
