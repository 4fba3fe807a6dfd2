//! The longest outages of one fault of one server at a time.

use serde::Serialize;

use super::logs::Logged;
use crate::clients::session::Ack;
use crate::faults::happened::{Happened, Hit};

/// So many are told.
const TOLD: usize = 5;

/// Longer ones are told, however many there are.
const TARGET_MS: f64 = 2500.0;

/// A fault, a group whose primary it hit, and the write by which its time ends.
pub struct Outage<'a> {
    /// The fault.
    pub fault: &'a Happened,
    /// The group.
    pub hit: &'a Hit,
    /// The first acknowledged write that was sent behind the fault.
    pub ack: Ack,
}

/// Something between a fault and the first acknowledged write.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Step {
    /// Milliseconds after the fault.
    pub ms: f64,
    /// The server that logged it; none: a client saw it.
    pub server: Option<u32>,
    /// What it was.
    pub text: String,
}

/// How an outage went.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Course {
    /// Milliseconds from the fault to the first acknowledged write that was sent behind it.
    pub ms: f64,
    /// The fault.
    pub fault: &'static str,
    /// Servers to which it happened; empty: to all.
    pub victims: Vec<u32>,
    /// When, in milliseconds of the run.
    pub at_ms: f64,
    /// The group.
    pub group: u32,
    /// Servers that were in sync before.
    pub set: Vec<u32>,
    /// Whether those were all that hold a copy.
    pub is_whole: bool,
    /// What happened, in the order of time.
    pub steps: Vec<Step>,
}

impl Course {
    /// Of an outage; `logged` is what the servers logged in its stretch, in the order of time.
    fn of(outage: &Outage<'_>, logged: &[Logged]) -> Self {
        let (fault, hit, ack) = (outage.fault, outage.hit, outage.ack);
        let group = hit.range as u32 + 1;
        let after_ms = |us: u64| us.saturating_sub(fault.at_us) as f64 / 1000.0;
        let is_of_it = |line: &&Logged| {
            (fault.at_us..=ack.ended_us).contains(&line.at_us)
                && line.group.is_none_or(|of| of == group)
        };
        let step = |line: &Logged| Step {
            ms: after_ms(line.at_us),
            server: Some(line.server),
            text: line.text.clone(),
        };
        let lines: Vec<&Logged> = logged.iter().filter(is_of_it).collect();
        let told = (0..lines.len()).filter(|at| !is_between_equals(&lines, *at));
        let mut steps: Vec<Step> = told.map(|at| step(lines[at])).collect();
        let mut saw = |us, text: &str| {
            steps.push(Step {
                ms: after_ms(us),
                server: None,
                text: text.to_owned(),
            });
        };
        saw(ack.begun_us, "the write is sent that ends it");
        saw(ack.ended_us, "it is acknowledged");
        steps.sort_by(|one, other| one.ms.total_cmp(&other.ms));
        Self {
            ms: after_ms(ack.ended_us),
            fault: fault.class.name(),
            victims: fault.victims.clone(),
            at_ms: fault.at_us as f64 / 1000.0,
            group,
            set: hit.set.clone(),
            is_whole: hit.is_whole,
            steps,
        }
    }

    /// For people.
    pub fn text(&self) -> String {
        let mut lines = vec![format!(
            "{:.0} ms: group {} with the set {:?}{}; {} {:?} at {:.1} s",
            self.ms,
            self.group,
            self.set,
            if self.is_whole { "" } else { ", not whole" },
            self.fault,
            self.victims,
            self.at_ms / 1000.0
        )];
        lines.extend(self.steps.iter().map(|step| {
            let who = match step.server {
                Some(server) => format!("server {server}"),
                None => "a client".to_owned(),
            };
            format!("  {:>8.0} ms  {who}: {}", step.ms, step.text)
        }));
        lines.join("\n")
    }
}

/// Whether the server of a line logged the same just before and just behind it: one that is cut off says so on and on.
fn is_between_equals(lines: &[&Logged], at: usize) -> bool {
    let (before, line, behind) = (&lines[..at], lines[at], &lines[at + 1..]);
    let is_of_server = |other: &&&Logged| other.server == line.server;
    let neighbours = [
        before.iter().rfind(is_of_server),
        behind.iter().find(is_of_server),
    ];
    let is_same = |other: Option<&&Logged>| other.is_some_and(|other| other.text == line.text);
    neighbours.into_iter().all(is_same)
}

/// The longest ones, longest first, and all that are longer than they should be.
#[derive(Default)]
pub struct Longest(Vec<Course>);

impl Longest {
    /// Takes in the outages of a stretch, in which this was logged.
    pub fn add(&mut self, outages: &[Outage<'_>], logged: &[Logged]) {
        let courses = outages.iter().map(|outage| Course::of(outage, logged));
        self.0.extend(courses);
        self.0.sort_by(|one, other| other.ms.total_cmp(&one.ms));
        let late = self.0.iter().filter(|course| course.ms > TARGET_MS).count();
        self.0.truncate(late.max(TOLD));
    }

    /// All of them.
    pub fn told(&self) -> &[Course] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::faults::class::Class;

    fn fault(at_us: u64) -> Happened {
        let hit = Hit {
            range: 1,
            set: vec![1, 2, 3],
            is_whole: true,
        };
        Happened {
            class: Class::Pause,
            victims: vec![1],
            hit: vec![hit],
            at_us,
            is_second: false,
        }
    }

    fn outage(fault: &Happened, us: u64) -> Outage<'_> {
        let ack = Ack {
            range: 1,
            begun_us: fault.at_us + us - 1000,
            ended_us: fault.at_us + us,
        };
        Outage {
            fault,
            hit: &fault.hit[0],
            ack,
        }
    }

    #[test]
    fn a_course_has_what_was_logged_of_its_group_until_the_write_that_ended_it() {
        let line = |at_us, server, group, text: &str| Logged {
            at_us,
            server,
            group,
            text: text.into(),
        };
        let logged = [
            line(999_999, 2, None, "before"),
            line(
                2_100_000,
                3,
                None,
                "the session of a server is gone server=1",
            ),
            line(2_150_000, 3, Some(2), "a term is to begin term=5"),
            line(2_160_000, 3, Some(3), "a term is to begin term=5"),
            line(2_400_000, 2, Some(2), "this server serves a group term=5"),
            line(2_600_000, 2, Some(2), "after"),
        ];
        let fault = fault(1_000_000);
        let mut longest = Longest::default();
        longest.add(&[outage(&fault, 1_500_000)], &logged);
        let expected = "\
1500 ms: group 2 with the set [1, 2, 3]; frozen for three sessions [1] at 1.0 s
      1100 ms  server 3: the session of a server is gone server=1
      1150 ms  server 3: a term is to begin term=5
      1400 ms  server 2: this server serves a group term=5
      1499 ms  a client: the write is sent that ends it
      1500 ms  a client: it is acknowledged";
        let told: Vec<String> = longest.told().iter().map(Course::text).collect();
        assert_eq!(told, [expected]);
    }

    #[test]
    fn the_longest_are_told_and_all_beyond_the_target() {
        let fault = fault(0);
        let told = |all_ms: &[u64]| {
            let mut longest = Longest::default();
            // One stretch after the other.
            for ms in all_ms {
                longest.add(&[outage(&fault, ms * 1000)], &[]);
            }
            let told = longest.told().iter();
            told.map(|course| course.ms as u64).collect::<Vec<_>>()
        };
        assert_eq!(told(&[10, 70, 30, 20, 60, 50, 40]), [70, 60, 50, 40, 30]);
        let late = [2600, 10, 2900, 2500, 2800, 2700, 3000, 3100];
        assert_eq!(told(&late), [3100, 3000, 2900, 2800, 2700, 2600]);
    }

    #[test]
    fn of_lines_that_a_server_repeats_the_first_and_the_last_are_told() {
        let line = |at_us, server, text: &str| Logged {
            at_us,
            server,
            group: None,
            text: text.into(),
        };
        let mut logged: Vec<Logged> = (0..100).map(|at| line(at, 1, "no session")).collect();
        logged.insert(50, line(49, 2, "this server is the master"));
        logged.push(line(100, 1, "another"));
        let fault = fault(0);
        let course = Course::of(&outage(&fault, 2_000_000), &logged);
        let steps: Vec<_> = course.steps[..4].iter().map(|s| (s.server, s.ms)).collect();
        let (one, two) = (Some(1), Some(2));
        assert_eq!(steps, [(one, 0.0), (two, 0.049), (one, 0.099), (one, 0.1)]);
    }
}
