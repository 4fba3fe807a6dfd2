//! How often clients do what.

use kreon_sim::Dice;

/// What a client can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// One put.
    Put,
    /// One deletion.
    Delete,
    /// The deletion of a range.
    DeleteRange,
    /// Several changes at once.
    Batch,
    /// Reads and writes, and a commit.
    Transaction,
    /// A read and a write of one key.
    Update,
    /// One get.
    Get,
    /// Is it there?
    Contains,
    /// Several gets in one call.
    MultiGet,
    /// Several gets as futures.
    GetAsync,
    /// Opens a snapshot.
    OpenSnapshot,
    /// Gets, or scans, through an open snapshot.
    ReadSnapshot,
    /// Closes one.
    CloseSnapshot,
    /// Begins a scan.
    OpenScan,
    /// Takes some pairs of an open scan.
    StepScan,
    /// Ends one.
    CloseScan,
    /// Makes or drops a region.
    ChangeRegion,
    /// Opens a region of another client by its name.
    FindRegion,
    /// Makes everything durable.
    Sync,
    /// Spills everything.
    Checkpoint,
    /// Takes an image of L0.
    Image,
    /// Loads half the keys of a region.
    Load,
}

/// Actions and how often each is done, usually.
const ACTIONS: [(Action, u64); 22] = [
    (Action::Put, 400),
    (Action::Delete, 100),
    (Action::Batch, 150),
    (Action::Transaction, 150),
    (Action::Update, 80),
    (Action::Get, 400),
    (Action::Contains, 80),
    (Action::MultiGet, 80),
    (Action::GetAsync, 60),
    (Action::OpenSnapshot, 50),
    (Action::ReadSnapshot, 150),
    (Action::CloseSnapshot, 40),
    (Action::OpenScan, 50),
    (Action::StepScan, 150),
    (Action::CloseScan, 20),
    (Action::ChangeRegion, 12),
    (Action::FindRegion, 12),
    (Action::Sync, 4),
    (Action::Checkpoint, 3),
    (Action::Image, 4),
    (Action::Load, 4),
    (Action::DeleteRange, 15),
];

/// Shares of the actions beside transactions where those are most of what is done.
const BESIDE_TRANSACTIONS: u64 = 6;

/// Weights of the actions.
#[derive(Clone, Debug)]
pub struct Mix {
    weights: [u64; ACTIONS.len()],
    sum: u64,
    /// One of so many writes is durable when it returns.
    pub sync_every: u64,
}

impl Mix {
    /// Any mix: each round is rich in something else. Without `has_loads` there are none.
    pub fn of(dice: &mut Dice, has_loads: bool) -> Self {
        let weights = ACTIONS.map(|(_, weight)| weight * [0, 1, 1, 2, 4][dice.below(5) as usize]);
        // Somebody always writes and reads.
        let mut weights = weights.map(|weight| weight + 1);
        weights[0] += 100;
        weights[5] += 50;
        for ((action, _), weight) in ACTIONS.iter().zip(&mut weights) {
            if *action == Action::Load && !has_loads {
                *weight = 0;
            }
        }
        Self {
            weights,
            sum: weights.iter().sum(),
            sync_every: [5, 40, 400][dice.below(3) as usize],
        }
    }

    /// The same, but most actions are transactions.
    pub fn with_transactions(mut self) -> Self {
        for ((action, _), weight) in ACTIONS.iter().zip(&mut self.weights) {
            *weight = match action {
                Action::Transaction => 2000,
                _ => weight.div_ceil(BESIDE_TRANSACTIONS),
            };
        }
        self.sum = self.weights.iter().sum();
        self
    }

    /// The next action.
    pub fn pick(&self, dice: &mut Dice) -> Action {
        let mut rest = dice.below(self.sum);
        for ((action, _), weight) in ACTIONS.iter().zip(self.weights) {
            if rest < weight {
                return *action;
            }
            rest -= weight;
        }
        Action::Get
    }
}
