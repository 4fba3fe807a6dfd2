//! Questions to the coordinator, and one compare-and-set whose outcome is learned however many replies get lost.
//!
//! Versions are given once more by a coordinator that was restored from a copy. So a swap goes only where a read, not long
//! ago, showed its base as it is, not just its version: to restore a coordinator and to change the node as often as it
//! had been changed takes longer than that. Sessions end with the coordinator that was restored, and with them what was
//! sent in them.

use kreon_base::planted;

use super::{Configuration, Known, Moment, Version};

/// Number of a question of one machine, so that a late answer is not taken for that of a later question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Ticket(pub u32);

impl Ticket {
    /// Draws the next ticket.
    pub fn draw(&mut self) -> Self {
        self.0 = self.0.wrapping_add(1);
        *self
    }
}

/// A question about the configuration of the machine's group. Each gets exactly one [`Answer`]; who asks for it sees to
/// that with a time limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ask {
    /// The configuration.
    Read {
        /// After a `sync`: the answer is not older than the question. Machines ask for nothing else.
        synced: bool,
    },
    /// Replace it.
    Swap {
        /// Only if it still has this version.
        expected: Version,
        /// By this.
        next: Configuration,
        /// And only if the node of the master's office still has this version: set by masters only.
        fence: Option<Version>,
    },
}

/// What became of a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The configuration.
    Read(Known),
    /// It was replaced.
    Done(Version),
    /// It had another version; nothing was replaced.
    Conflict,
    /// Another master is in office; nothing was replaced.
    FenceLost,
    /// No answer came. A swap may have been carried out, or still be.
    Unknown,
}

/// A compare-and-set under way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Swap {
    /// What it replaces.
    pub base: Known,
    /// By what.
    pub next: Configuration,
    fence: Option<Version>,
    /// When the swap was sent last.
    sent: Moment,
    stage: Stage,
    /// While it is stuck, nothing is asked before this.
    again_at: Moment,
}

/// A coordinator that knows less than the base is asked again after this.
const AGAIN_US: u64 = 250_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Sent(Ticket),
    /// The outcome is unknown, and looked up.
    Learning(Ticket),
    /// The coordinator did not answer: again at the next tick.
    Stuck,
}

/// How a [`Swap`] stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Not known yet.
    Open,
    /// The configuration was replaced.
    Done {
        /// What counts now.
        known: Known,
        /// When the swap was sent that may have done it.
        sent: Moment,
    },
    /// The coordinator has a later configuration: this swap was not carried out and never will be, or it was and was
    /// followed by others. The configuration says which. If it is of a later term, its version may be a lower one: the
    /// coordinator was restored from a copy, and others went on from there.
    Overtaken(Known),
    /// Another master is in office.
    FenceLost,
}

impl Swap {
    /// Sends a swap; `ask` takes the question. If `is_fresh` does not hold, nobody has seen the base for so long that it is
    /// read first.
    pub fn begin(
        (base, is_fresh): (Known, bool),
        next: Configuration,
        fence: Option<Version>,
        now: Moment,
        ticket: Ticket,
        ask: &mut dyn FnMut(Ticket, Ask),
    ) -> Self {
        let mut swap = Self {
            base,
            next,
            fence,
            sent: now,
            stage: Stage::Stuck,
            again_at: now,
        };
        match is_fresh {
            true => swap.send(now, ticket, ask),
            false => swap.learn(ticket, ask),
        }
        swap
    }

    /// Whether the answer with this ticket is for this swap.
    pub fn awaits(&self, ticket: Ticket) -> bool {
        matches!(self.stage, Stage::Sent(t) | Stage::Learning(t) if t == ticket)
    }

    /// An answer that the swap [awaits](Self::awaits). `next_ticket` is for the question that may follow.
    pub fn on_answer(
        &mut self,
        now: Moment,
        answer: Answer,
        next_ticket: Ticket,
        ask: &mut dyn FnMut(Ticket, Ask),
    ) -> Outcome {
        match answer {
            Answer::Done(version) => self.done(version),
            Answer::FenceLost => Outcome::FenceLost,
            Answer::Conflict => {
                planted!(CasIgnored => return self.done(Version(self.base.version.0 + 1)));
                self.learn(next_ticket, ask);
                Outcome::Open
            }
            Answer::Unknown if matches!(self.stage, Stage::Learning(_)) => {
                self.stage = Stage::Stuck;
                Outcome::Open
            }
            Answer::Unknown => {
                self.learn(next_ticket, ask);
                Outcome::Open
            }
            Answer::Read(known) if known.version > self.base.version => {
                let ours = known.version.0 == self.base.version.0 + 1 && known.config == self.next;
                match ours {
                    true => self.done(known.version),
                    false => Outcome::Overtaken(known),
                }
            }
            Answer::Read(known) => {
                planted!(LostReplyReadWithoutSync => return Outcome::Overtaken(known));
                if known == self.base {
                    // The lost swap may be under way yet: the same again, which is safe at the same version.
                    self.send(now, next_ticket, ask);
                    return Outcome::Open;
                }
                // A coordinator that was restored from a copy.
                match known.config.term > self.base.config.term {
                    true => Outcome::Overtaken(known),
                    false => {
                        self.put_off(now);
                        Outcome::Open
                    }
                }
            }
        }
    }

    /// The coordinator knows less than is known here, or else: nothing it says counts, and it is asked again.
    pub fn put_off(&mut self, now: Moment) {
        self.stage = Stage::Stuck;
        self.again_at = now.after_us(AGAIN_US);
    }

    /// Time passes: a swap that got no answer asks again.
    pub fn on_tick(&mut self, now: Moment, next_ticket: Ticket, ask: &mut dyn FnMut(Ticket, Ask)) {
        if self.stage == Stage::Stuck && self.again_at <= now {
            self.learn(next_ticket, ask);
        }
    }

    fn done(&self, version: Version) -> Outcome {
        let known = Known {
            version,
            config: self.next.clone(),
        };
        Outcome::Done {
            known,
            sent: self.sent,
        }
    }

    fn send(&mut self, now: Moment, ticket: Ticket, ask: &mut dyn FnMut(Ticket, Ask)) {
        self.stage = Stage::Sent(ticket);
        self.sent = now;
        let swap = Ask::Swap {
            expected: self.base.version,
            next: self.next.clone(),
            fence: self.fence,
        };
        ask(ticket, swap);
    }

    fn learn(&mut self, ticket: Ticket, ask: &mut dyn FnMut(Ticket, Ask)) {
        let synced = true;
        planted!(LostReplyReadWithoutSync => let synced = false);
        self.stage = Stage::Learning(ticket);
        ask(ticket, Ask::Read { synced });
    }
}
