//! What clients did and saw: the history that is judged.

use std::collections::{HashMap, HashSet};

/// One register: a key of a region, or a fact about regions. It holds a version or nothing.
pub type Register = u64;

/// Which write a value comes from. No two writes to a register have the same one.
pub type Version = u64;

/// What a read said about a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    /// It holds nothing.
    Absent,
    /// It holds something.
    Present,
    /// It holds this.
    Version(Version),
}

/// One call of a client, or the part of it that is promised to happen at one moment.
#[derive(Clone, Debug)]
pub struct Call {
    /// For people.
    pub what: &'static str,
    /// Who called.
    pub client: u32,
    /// When. Moments are numbers from one clock that all clients share.
    pub invoked: u64,
    /// When it returned; `None`: never, and then its writes may have happened or not.
    pub returned: Option<u64>,
    /// What it saw.
    pub reads: Vec<(Register, Seen)>,
    /// What it wrote; `None` deletes. All at once.
    pub writes: Vec<(Register, Option<Version>)>,
    /// Whether it was acknowledged as durable, by itself or by a later call.
    pub is_durable: bool,
}

impl Call {
    /// A call that only reads.
    pub fn read(what: &'static str, invoked: u64, returned: u64) -> Self {
        Self {
            what,
            client: 0,
            invoked,
            returned: Some(returned),
            reads: Vec::new(),
            writes: Vec::new(),
            is_durable: false,
        }
    }

    /// Whether it comes before `other` by the clock.
    pub fn precedes(&self, other: &Self) -> bool {
        self.returned.is_some_and(|end| end < other.invoked)
    }
}

/// What the registers hold; those that are not named hold nothing.
pub type State = HashMap<Register, Version>;

/// Calls of several clients, from a known state on.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// Before all calls.
    pub before: State,
    /// In no particular order.
    pub calls: Vec<Call>,
    /// What a recovery found after the last call: the state after some prefix of the order in which
    /// the calls took effect, in which every durable call is.
    pub recovered: Option<State>,
}

/// Why a history cannot be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The call, by its place in the history, at which no order is left; `None`: the recovery.
    pub call: Option<usize>,
    /// In words.
    pub text: String,
}

/// The judgement of a history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// There is an order that explains it.
    Linearizable,
    /// There is none.
    Wrong(Violation),
    /// Too many orders were possible at once.
    Undecided,
}

impl History {
    /// Forgets the calls that never returned and explain nothing: all that they wrote are versions that nobody saw, to
    /// registers of which nobody saw just that they hold something. Whatever order explains the rest with them does so
    /// without them, so the verdict is the same; but each would be under way until the end, and the search takes a
    /// limited number of those.
    pub fn forget_unseen(&mut self) {
        let mut seen: HashSet<(Register, Version)> = HashSet::new();
        let mut present: HashSet<Register> = HashSet::new();
        for (register, what) in self.calls.iter().flat_map(|call| &call.reads) {
            match what {
                Seen::Version(version) => _ = seen.insert((*register, *version)),
                Seen::Present => _ = present.insert(*register),
                Seen::Absent => {}
            }
        }
        let recovered = self.recovered.iter().flatten();
        seen.extend(recovered.map(|(register, version)| (*register, *version)));
        let is_unseen = |(register, version): &(Register, Option<Version>)| {
            let version = version.map(|version| (*register, version));
            version.is_some_and(|written| !seen.contains(&written)) && !present.contains(register)
        };
        let explains_nothing = |call: &Call| {
            call.returned.is_none() && !call.is_durable && call.writes.iter().all(is_unseen)
        };
        self.calls.retain(|call| !explains_nothing(call));
    }
}
