//! The course of a walk: what is due next, happens.

use std::collections::{BTreeMap, VecDeque};

use kreon_coord::Paths;
use kreon_coord::fake::{Fake, SessionId};
use kreon_replica::machine::{Configuration, Known, Member, ServerId, Term, Version};
use kreon_sim::Dice;

use super::clients::{Caller, ranges};
use super::event::Happening;
use super::faults::Focus;
use super::history::History;
use super::judge::{Broken, Judge, Loss};
use super::node::Node;
use super::operator::Restored;
use crate::toy::{Place, member};

/// How a walk goes.
#[derive(Clone, Copy, Debug)]
pub struct Course {
    /// Where the dice begin.
    pub seed: u64,
    /// True time that passes.
    pub seconds: u64,
    /// Keep what happened last, to show it.
    pub trace: bool,
    /// The operator vouches for the end of processes that run: what is promised does not hold then.
    pub operator_lies: bool,
}

/// What became of a walk.
#[derive(Clone, Debug)]
pub struct Walked {
    /// What does not hold, and when it was seen, in true microseconds.
    pub broken: Option<(Broken, u64)>,
    /// What happened how often.
    pub counts: BTreeMap<&'static str, u64>,
    /// What happened last.
    pub trace: Vec<String>,
}

/// Lines that are kept.
const TRACE_MAX: usize = 400;

/// A walk.
pub(super) struct Walk {
    pub(super) now_us: u64,
    pub(super) focus: Focus,
    sequence: u64,
    queue: BTreeMap<(u64, u64), Happening>,
    pub(super) dice: Dice,
    pub(super) fake: Fake,
    /// The session of the judge.
    pub(super) witness: SessionId,
    pub(super) paths: Paths,
    pub(super) nodes: Vec<Node>,
    pub(super) judge: Judge,
    /// When the last message from one server to another arrives, on the link of streams and on that of the rest.
    pub(super) links: Vec<Vec<[u64; 2]>>,
    /// How long a message takes, at most, unless it is slow.
    pub(super) way_us: u64,
    /// Starts whose messages that were under way when they ended are lost.
    pub(super) silenced: Vec<Member>,
    /// Whether messages from one server to another are lost.
    pub(super) cut: Vec<Vec<bool>>,
    pub(super) coordinator_down: bool,
    pub(super) sessions: Vec<(SessionId, u64)>,
    /// The configuration as the coordinator has it.
    pub(super) current: Known,
    pub(super) loss_accepted: Option<Loss>,
    /// Who is to be promoted, in which term.
    pub(super) wished: Option<(ServerId, Term)>,
    /// All of a set failed: what is left counts from the next office on.
    pub(super) whole_set_failed: bool,
    pub(super) restored: Option<Restored>,
    /// The moments of the coordinator after which the configuration changed.
    pub(super) moments: Vec<u64>,
    pub(super) operator_lies: bool,
    pub(super) callers: Vec<Caller>,
    pub(super) history: History,
    /// What the answer that is being looked at found, to which call.
    pub(super) found: Option<(u64, Option<crate::toy::Write>)>,
    /// Nothing that follows can be judged.
    pub(super) is_over: bool,
    pub(super) barriers: u64,
    pub(super) reads: u64,
    pub(super) counts: BTreeMap<&'static str, u64>,
    pub(super) broken: Option<Broken>,
    keeps_trace: bool,
    trace: VecDeque<String>,
}

/// Walks.
pub fn walk(course: &Course) -> Walked {
    let mut walk = Walk::new(course);
    let end_us = course.seconds * 1_000_000;
    while let Some(((due_us, _), happening)) = walk.queue.pop_first() {
        if due_us > end_us || walk.broken.is_some() || walk.is_over {
            break;
        }
        walk.now_us = due_us;
        walk.happen(happening);
    }
    if walk.broken.is_none() {
        let wrong = walk.history.check();
        walk.explain(wrong);
    }
    walk.counts.insert("calls explained", walk.history.checked);
    let kept = walk.judge.kept() as u64;
    walk.counts.insert("writes kept", kept);
    let writes = walk.judge.writes() as u64;
    walk.counts.insert("writes", writes);
    Walked {
        broken: walk.broken.map(|broken| (broken, walk.now_us)),
        counts: walk.counts,
        trace: walk.trace.into(),
    }
}

impl Walk {
    fn new(course: &Course) -> Self {
        let mut dice = Dice::new(course.seed);
        let servers = 2 + dice.below(3) as usize;
        let wrong_clocks = dice.below(2) == 0;
        let rate = |dice: &mut Dice| match wrong_clocks {
            true => 800_000 + dice.below(400_001),
            false => 1_000_000,
        };
        let nodes: Vec<Node> = (0..servers)
            .map(|at| {
                let rate = rate(&mut dice);
                Node::new(at, rate, dice.below(1 << 40))
            })
            .collect();
        let config = first_configuration(servers, 1 + (dice.below(3) == 0) as u8);
        let mut fake = Fake::new();
        let witness = fake.begin();
        let mut walk = Self {
            now_us: 0,
            focus: Focus::of(course.seed),
            sequence: 0,
            queue: BTreeMap::new(),
            fake,
            witness,
            paths: Paths::new("walk"),
            judge: Judge::default(),
            links: vec![vec![[0; 2]; servers]; servers],
            cut: vec![vec![false; servers]; servers],
            silenced: Vec::new(),
            way_us: [400, 400, 20_000][dice.below(3) as usize],
            coordinator_down: false,
            sessions: Vec::new(),
            current: Known {
                version: Version(0),
                config,
            },
            loss_accepted: None,
            wished: None,
            whole_set_failed: false,
            restored: None,
            moments: Vec::new(),
            operator_lies: course.operator_lies,
            callers: Vec::new(),
            history: History::default(),
            found: None,
            is_over: false,
            barriers: 0,
            reads: 0,
            counts: BTreeMap::new(),
            broken: None,
            keeps_trace: course.trace,
            trace: VecDeque::new(),
            nodes,
            dice,
        };
        if wrong_clocks {
            walk.count("clocks that are wrong");
        }
        walk.begin(course);
        walk
    }

    /// Everything begins: processes, clients, faults.
    fn begin(&mut self, course: &Course) {
        self.prepare();
        self.moments.push(self.fake.moment());
        self.begin_clients();
        for at in 0..self.nodes.len() {
            self.begin_process(at);
        }
        self.after(1_000, Happening::Sweeps);
        self.after(100_000, Happening::Client);
        self.after(2_000_000, Happening::Fault);
        self.after(3_000_000, Happening::Operator);
        if course.seed.is_multiple_of(3) {
            self.after(2_500_000, Happening::Wish);
        }
        if course.seed % 5 == 4 {
            let us = 4_000_000 + self.dice.below(20_000_000);
            self.after(us, Happening::Restored);
        }
    }

    /// `happening` is due in `us` microseconds.
    pub(super) fn after(&mut self, us: u64, happening: Happening) {
        self.sequence += 1;
        self.queue
            .insert((self.now_us + us, self.sequence), happening);
    }

    /// The clock and the contacts of a process begin.
    pub(super) fn begin_process(&mut self, at: Place) {
        let start = self.nodes[at].start;
        let first = self.dice.below(20_000);
        self.after(first, Happening::Contacts(at, start));
        self.after(first + 1, Happening::Ticks(at, start));
    }

    pub(super) fn count(&mut self, what: &'static str) {
        *self.counts.entry(what).or_default() += 1;
    }

    pub(super) fn break_with(&mut self, broken: Broken) {
        self.tell(|| format!("BROKEN {broken:?}"));
        self.broken.get_or_insert(broken);
    }

    /// Keeps a line of what happened.
    pub(super) fn tell(&mut self, line: impl FnOnce() -> String) {
        if self.keeps_trace {
            if self.trace.len() == TRACE_MAX {
                self.trace.pop_front();
            }
            let us = self.now_us;
            self.trace.push_back(format!("{us:>10} {}", line()));
        }
    }

    /// A process that is paused does nothing before it goes on.
    fn is_put_off(&mut self, at: Place, happening: &Happening) -> bool {
        let until_us = self.nodes[at].paused_until_us;
        if until_us <= self.now_us {
            return false;
        }
        // What it finds to do then, it does in any order; but each link delivers in its own.
        let us = match happening {
            Happening::Arrives { .. } => self.nodes[at].backlog_us,
            _ => self.dice.below(300),
        };
        self.after(until_us - self.now_us + us, happening.clone());
        true
    }

    fn happen(&mut self, happening: Happening) {
        if matches!(&happening, Happening::Arrives { from, .. } if self.silenced.contains(from)) {
            return;
        }
        if let Some((at, start)) = self.whose(&happening) {
            let node = &self.nodes[at];
            if !node.up || start.is_some_and(|start| start != node.start) {
                return;
            }
            if self.is_put_off(at, &happening) {
                return;
            }
        }
        if self.keeps_trace && !matches!(happening, Happening::Ticks(..) | Happening::Sweeps) {
            self.tell(|| format!("{happening:?}"));
        }
        self.dispatch(happening);
        self.check();
    }

    /// The server at which something happens, if it is not the world's doing.
    fn whose(&self, happening: &Happening) -> Option<(Place, Option<u8>)> {
        match happening {
            Happening::Arrives { to, start, .. } => Some((crate::toy::place_of(*to), *start)),
            Happening::Answered(at, start, ..)
            | Happening::Ticks(at, start)
            | Happening::Flushed(at, start, ..)
            | Happening::Ended(at, start, ..)
            | Happening::Repaired(at, start, _)
            | Happening::Contacts(at, start) => Some((*at, Some(*start))),
            Happening::Requested(at, _) => Some((*at, None)),
            _ => None,
        }
    }

    fn dispatch(&mut self, happening: Happening) {
        match happening {
            Happening::Arrives {
                from, to, message, ..
            } => self.arrive(crate::toy::place_of(to), from, message),
            Happening::Asked(at, start, session, asker, ticket, ask) => {
                self.on_asked(at, (start, session), asker, ticket, ask);
            }
            Happening::Stray(at, session, ask) => self.on_stray(at, session, &ask),
            Happening::Answered(at, _, asker, ticket, answer) => {
                self.on_answered(at, asker, ticket, answer);
            }
            Happening::Ticks(at, start) => self.on_tick(at, start),
            Happening::Flushed(at, _, term, end) => self.on_flushed(at, term, end),
            Happening::Ended(at, _, term, report) => self.on_ended(at, term, report),
            Happening::Repaired(at, _, term) => self.on_repaired(at, term),
            Happening::Contacts(at, start) => self.contact(at, start),
            Happening::Sweeps => self.sweep(),
            Happening::Client => self.client(),
            Happening::Fault => self.fault(),
            Happening::MapAsked(client, synced) => self.on_map_asked(client, synced),
            Happening::Told(client, event) => self.on_told(client, event),
            Happening::Replied(request, reply, found) => self.on_replied(request, reply, found),
            Happening::Requested(at, request) => self.request(at, request),
            Happening::Fails(at) => self.crash(at),
            Happening::Restarts(at) => self.restart(at),
            Happening::Heals => self.heal(),
            Happening::CoordinatorHeals(at) => self.nodes[at].is_cut_off = false,
            Happening::CoordinatorReturns => self.coordinator_down = false,
            Happening::Operator => self.operate(),
            Happening::Wish => self.wish(),
            Happening::Restored => self.restore(),
        }
    }

    /// What must hold after everything that happens.
    fn check(&mut self) {
        if self.restored.is_some() {
            return; // the set that it names was changed since
        }
        let config = &self.current.config;
        let Some(member) = config.primary else { return };
        let node = &self.nodes[crate::toy::place(member)];
        let Some(primary) = &node.primary else { return };
        if node.me() != member || primary.term() != config.term {
            return;
        }
        let is_counted = |other: &&Member| {
            let mut peers = primary.peers().iter();
            peers.any(|peer| peer.member == **other && peer.standing.is_counted())
        };
        let mut others = config.in_sync.iter().filter(|other| **other != member);
        if let Some(other) = others.find(|other| !is_counted(other)) {
            let broken = Broken::Uncounted(other.server.0);
            self.break_with(broken);
        }
    }
}

/// All servers are in the set, and nobody is in office.
fn first_configuration(servers: usize, min_in_sync: u8) -> Configuration {
    let in_sync: Vec<Member> = (0..servers).map(|at| member(at, 0)).collect();
    Configuration {
        term: Term(1),
        primary: None,
        servers: in_sync.iter().map(|member| member.server).collect(),
        in_sync: in_sync.into(),
        min_in_sync,
        after_loss: false,
        loss_term: Term(0),
        all_needed: false,
        ranges: ranges().into(),
    }
}
