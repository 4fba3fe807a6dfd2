//! What a run tells at its end.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::clients::session::{Ack, Log};
use crate::course::longest::{Course, Outage};
use crate::faults::class::Class;
use crate::faults::happened::Happened;

/// Times, in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Times {
    /// How many.
    pub count: usize,
    /// Half of them are no longer.
    pub p50_ms: f64,
    /// 99 of 100 are no longer.
    pub p99_ms: f64,
    /// The longest.
    pub max_ms: f64,
}

/// Figures of one class of faults.
#[derive(Clone, Debug, Default, Serialize)]
pub struct OfClass {
    /// How often it happened.
    pub faults: u64,
    /// From a fault to the first acknowledged write that was sent behind it, of groups whose primary it hit.
    pub hit: Times,
    /// The same where another fault was under way, or came before writes went on, or had left the set without a member.
    pub hit_doubly: Times,
    /// The same of other groups.
    pub others: Times,
}

/// All of them.
#[derive(Default)]
pub struct Figures {
    faults: BTreeMap<Class, u64>,
    hit: BTreeMap<Class, Vec<u64>>,
    hit_doubly: BTreeMap<Class, Vec<u64>>,
    others: BTreeMap<Class, Vec<u64>>,
    acknowledged: u64,
    refused: u64,
    unknown: u64,
    closed: u64,
    /// Frozen primaries of a run of these.
    pub pauses: u64,
    /// Questions that frozen primaries answered or refused when they went on.
    pub asked_frozen: u64,
    /// From the end of a stretch, when everything works again, until all sets were whole, in microseconds.
    pub whole_us: Vec<u64>,
    stretches: u64,
}

/// What is printed, and written as JSON.
#[derive(Debug, Serialize)]
pub struct Report {
    /// Makes the same choices again.
    pub seed: u64,
    /// How long it ran.
    pub seconds: u64,
    /// Promises that were broken.
    pub violations: u64,
    /// Calls that were judged.
    pub judged: u64,
    /// Stretches for which there is no verdict.
    pub undecided: u64,
    /// Stretches between moments of rest.
    pub stretches: u64,
    /// Writes that were acknowledged.
    pub acknowledged: u64,
    /// Calls that were refused.
    pub refused: u64,
    /// Writes of unknown outcome.
    pub unknown: u64,
    /// Snapshots that ended with their primaries.
    pub closed: u64,
    /// Terms with a new primary.
    pub failovers: u64,
    /// Frozen primaries, if that was asked for.
    pub pauses: u64,
    /// Questions that frozen primaries found, and answered or refused, when they went on.
    pub asked_frozen: u64,
    /// Of one fault of one server at a time: time until writes went on in groups whose primary was hit.
    pub unavailable: Times,
    /// The same of two faults at a time, or of one before the set was whole again after another.
    pub unavailable_doubly: Times,
    /// From the end of a stretch, when everything works again, until all sets are whole.
    pub whole: Times,
    /// By class.
    pub classes: BTreeMap<&'static str, OfClass>,
    /// The longest outages of one fault of one server at a time, longest first; also where the set was not whole.
    pub longest: Vec<Course>,
    /// What this machine lacks.
    pub lacks: Vec<String>,
}

impl Figures {
    /// Takes in a stretch. Returns the outages of groups whose primary was hit by one fault of one server at a time.
    pub fn add<'a>(&mut self, log: &Log, faults: &'a [Happened], ranges: usize) -> Vec<Outage<'a>> {
        let mut outages = Vec::new();
        self.stretches += 1;
        self.acknowledged += log.acks.len() as u64;
        self.refused += log.refused;
        self.unknown += log.unknown;
        self.closed += log.closed;
        for fault in faults {
            *self.faults.entry(fault.class).or_default() += 1;
            for range in 0..ranges {
                let Some(ack) = first_written(&log.acks, range, fault.at_us) else {
                    continue;
                };
                let us = ack.ended_us - fault.at_us;
                let times = match fault.hit.iter().find(|hit| hit.range == range) {
                    Some(hit) if is_alone(fault, faults, us) => {
                        if is_of_one_server(fault.class) {
                            outages.push(Outage { fault, hit, ack });
                        }
                        match hit.is_whole {
                            true => &mut self.hit,
                            false => &mut self.hit_doubly,
                        }
                    }
                    Some(_) => &mut self.hit_doubly,
                    None => &mut self.others,
                };
                times.entry(fault.class).or_default().push(us);
            }
        }
        outages
    }

    /// How often a class happened.
    pub fn faults(&self, class: Class) -> u64 {
        self.faults.get(&class).copied().unwrap_or(0)
    }

    /// By class; and of all that hit one server, alone and with another fault.
    pub fn told(&self) -> (BTreeMap<&'static str, OfClass>, [Times; 2]) {
        let mut classes = BTreeMap::new();
        let (mut alone, mut doubly) = (Vec::new(), Vec::new());
        for class in Class::ALL.iter().filter(|class| self.faults(**class) > 0) {
            let of =
                |times: &BTreeMap<Class, Vec<u64>>| times.get(class).cloned().unwrap_or_default();
            let (hit, hit_doubly) = (of(&self.hit), of(&self.hit_doubly));
            if is_of_one_server(*class) {
                alone.extend_from_slice(&hit);
                doubly.extend_from_slice(&hit_doubly);
            }
            let told = OfClass {
                faults: self.faults(*class),
                hit: times(hit),
                hit_doubly: times(hit_doubly),
                others: times(of(&self.others)),
            };
            classes.insert(class.name(), told);
        }
        (classes, [times(alone), times(doubly)])
    }

    /// The report of a run without violations.
    pub fn report(&self, seed: u64, seconds: u64, lacks: Vec<String>) -> Report {
        let (classes, [unavailable, unavailable_doubly]) = self.told();
        Report {
            seed,
            seconds,
            violations: 0,
            judged: 0,
            undecided: 0,
            stretches: self.stretches,
            acknowledged: self.acknowledged,
            refused: self.refused,
            unknown: self.unknown,
            closed: self.closed,
            failovers: 0,
            pauses: self.pauses,
            asked_frozen: self.asked_frozen,
            unavailable,
            unavailable_doubly,
            whole: times(self.whole_us.clone()),
            classes,
            longest: Vec::new(),
            lacks,
        }
    }
}

/// Whether it takes one server from its groups, and leaves the others and ZooKeeper.
const fn is_of_one_server(class: Class) -> bool {
    matches!(
        class,
        Class::Kill | Class::Pause | Class::Isolated | Class::CoordinatorCut | Class::DiskHung
    )
}

/// Whether no other fault of a stretch was under way from `fault` until writes went on.
fn is_alone(fault: &Happened, stretch: &[Happened], us: u64) -> bool {
    let until = fault.at_us + us;
    let is_with =
        |other: &Happened| other.is_second && (fault.at_us + 1..until).contains(&other.at_us);
    !fault.is_second && !stretch.iter().any(is_with)
}

/// The first acknowledgement of a write that was sent behind a moment.
fn first_written(acks: &[Ack], range: usize, at_us: u64) -> Option<Ack> {
    let of_range = acks
        .iter()
        .filter(|ack| ack.range == range && ack.begun_us >= at_us);
    of_range.min_by_key(|ack| ack.ended_us).copied()
}

fn times(mut all: Vec<u64>) -> Times {
    all.sort_unstable();
    let ms = |share: usize| {
        let at = (all.len() * share).div_ceil(100).saturating_sub(1);
        all.get(at).map_or(0.0, |us| *us as f64 / 1000.0)
    };
    Times {
        count: all.len(),
        p50_ms: ms(50),
        p99_ms: ms(99),
        max_ms: ms(100),
    }
}

impl Report {
    /// For people.
    pub fn text(&self) -> String {
        let mut lines = vec![
            format!(
                "{} s, seed {}: {} violations; {} calls judged in {} stretches, {} without a verdict",
                self.seconds,
                self.seed,
                self.violations,
                self.judged,
                self.stretches,
                self.undecided
            ),
            format!(
                "{} writes acknowledged, {} unknown; {} calls refused; {} snapshots ended with their primaries",
                self.acknowledged, self.unknown, self.refused, self.closed
            ),
            format!("{} failovers", self.failovers),
            went_on("one fault", &self.unavailable),
            went_on("two at a time", &self.unavailable_doubly),
            format!(
                "sets were whole again, after everything worked, after p50 {:.0} ms, at most {:.0} ms; {} questions to frozen primaries",
                self.whole.p50_ms, self.whole.max_ms, self.asked_frozen
            ),
            format!(
                "{:<30} {:>6}  {:>27}  {:>18}  {:>18}",
                "fault",
                "times",
                "primary hit: p50/p99/max ms",
                "with another fault",
                "other groups"
            ),
        ];
        let said = |t: &Times| format!("{:.0}/{:.0}/{:.0}", t.p50_ms, t.p99_ms, t.max_ms);
        for (name, of) in &self.classes {
            lines.push(format!(
                "{name:<30} {:>6}  {:>27}  {:>18}  {:>18}",
                of.faults,
                said(&of.hit),
                said(&of.hit_doubly),
                said(&of.others)
            ));
        }
        if !self.longest.is_empty() {
            lines.push("the longest of one fault of one server at a time:".into());
            lines.extend(self.longest.iter().map(Course::text));
        }
        lines.extend(
            self.lacks
                .iter()
                .map(|lack| format!("this machine: {lack}")),
        );
        lines.join("\n")
    }
}

fn went_on(faults: &str, times: &Times) -> String {
    format!(
        "{faults}: writes went on after p50 {:.0} ms, p99 {:.0} ms, at most {:.0} ms ({} groups whose primary was hit)",
        times.p50_ms, times.p99_ms, times.max_ms, times.count
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::faults::happened::Hit;

    #[test]
    fn a_fault_ends_with_a_write_that_was_sent_behind_it() {
        let ack = |range, begun_us, ended_us| Ack {
            range,
            begun_us,
            ended_us,
        };
        let log = Log {
            acks: vec![
                ack(0, 50, 2100),
                ack(0, 120, 4100),
                ack(0, 130, 3100),
                ack(1, 110, 600),
            ],
            ..Log::default()
        };
        let hit = Hit {
            range: 0,
            set: vec![1, 2],
            is_whole: true,
        };
        let mut fault = Happened {
            class: Class::Kill,
            victims: vec![1],
            hit: vec![hit],
            at_us: 100,
            is_second: false,
        };
        let told = |faults: &[Happened]| {
            let mut figures = Figures::default();
            figures.add(&log, faults, 2);
            figures.told()
        };
        let (classes, [alone, doubly]) = told(std::slice::from_ref(&fault));
        assert_eq!(classes["kill -9"].hit.max_ms, 3.0);
        assert_eq!(classes["kill -9"].others.max_ms, 0.5);
        assert_eq!((alone.count, alone.p50_ms, doubly.count), (1, 3.0, 0));

        // Another fault counts if it comes before writes go on.
        let second = |at_us| Happened {
            class: Class::Pause,
            victims: vec![2],
            hit: Vec::new(),
            at_us,
            is_second: true,
        };
        let counts = |at_us| {
            let (_, [alone, doubly]) = told(&[fault.clone(), second(at_us)]);
            (alone.count, doubly.count)
        };
        assert_eq!(counts(3099), (0, 1));
        assert_eq!(counts(3100), (1, 0));

        // So does one before, after which a member had not come back.
        fault.hit[0].is_whole = false;
        let (_, [alone, doubly]) = told(std::slice::from_ref(&fault));
        assert_eq!((alone.count, doubly.count), (0, 1));

        // The course is told of both, but not of what hit all servers, or none.
        let courses = |fault: &Happened| {
            let outages = Figures::default().add(&log, std::slice::from_ref(fault), 2);
            outages.iter().map(|outage| outage.ack.ended_us).collect()
        };
        let of_class = |class| Happened {
            class,
            ..fault.clone()
        };
        let [told, untold]: [Vec<u64>; 2] =
            [Class::Kill, Class::CoordinatorDown].map(|class| courses(&of_class(class)));
        assert_eq!((told, untold), (vec![3100], vec![]));
    }
}
