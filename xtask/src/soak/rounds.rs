//! The parts in turn, until the time is over or one fails.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use super::parts::{PARTS, Part};
use super::turn::{Ended, Runner};

/// How long to run, and what.
#[derive(clap::Args)]
pub struct Arguments {
    /// How long; building is not counted.
    #[arg(long)]
    minutes: f64,
    /// Seed of the seeds.
    #[arg(long)]
    seed: Option<u64>,
    /// Seconds of one turn of a part, as in `sim=60`; 0 leaves it out. May be given several times.
    #[arg(long, value_parser = parse_turn)]
    turn: Vec<(String, f64)>,
}

/// What is left of the time when no turn is begun any more.
const LEAST_SECONDS: f64 = 3.0;

/// A turn that is not over so long after the end is cut short.
const GRACE: Duration = Duration::from_secs(5);

/// The next turn may be given at most so many times as much as the last.
const GROWTH_MAX: f64 = 8.0;

fn parse_turn(text: &str) -> Result<(String, f64), String> {
    let (name, seconds) = text.split_once('=').ok_or("not of the form part=seconds")?;
    let seconds: f64 = seconds.parse().map_err(|_| "not a number of seconds")?;
    if !PARTS.iter().any(|part| part.name == name) {
        let names: Vec<_> = PARTS.iter().map(|part| part.name).collect();
        return Err(format!("the parts are {}", names.join(", ")));
    }
    match (0.0..=86_400.0).contains(&seconds) {
        true => Ok((name.to_owned(), seconds)),
        false => Err("not a number of seconds".to_owned()),
    }
}

/// Runs the parts; fails at the first turn that finds something.
pub fn run(arguments: &Arguments) -> Result<()> {
    ensure!(
        arguments.minutes > 0.0 && arguments.minutes <= 1e5,
        "--minutes must be more than 0"
    );
    let mut courses = courses(arguments);
    ensure!(!courses.is_empty(), "every part is left out");
    let runner = Runner::build()?;
    let seed = arguments.seed.unwrap_or_else(|| {
        let now = std::time::UNIX_EPOCH.elapsed().unwrap_or_default();
        u64::from(now.subsec_nanos()) ^ (now.as_secs() << 10) & 0xffff_ffff
    });
    let folder = Path::new("/var/tmp").join(format!("kreon-soak-{}", std::process::id()));
    std::fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    println!("soak: seed {seed}, {} minutes", arguments.minutes);
    let mut soak = Soak {
        runner,
        start: Instant::now(),
        length: Duration::from_secs_f64(arguments.minutes * 60.0),
        folder,
        seed,
    };
    let outcome = soak.turns(&mut courses);
    for course in &courses {
        println!("soak: {}", course.sum());
    }
    let seconds = soak.start.elapsed().as_secs_f64();
    println!(
        "soak: {seconds:.0} s, seeds from {seed} to {}",
        soak.seed.wrapping_sub(1)
    );
    outcome?;
    std::fs::remove_dir_all(&soak.folder).with_context(|| soak.folder.display().to_string())
}

fn courses(arguments: &Arguments) -> Vec<Course> {
    let courses = PARTS.iter().map(|part| {
        let given = arguments
            .turn
            .iter()
            .rev()
            .find(|(name, _)| name == part.name);
        Course {
            part,
            seconds: given.map_or(part.turn_seconds, |(_, seconds)| *seconds),
            amount: part.first_amount,
            turns: 0,
            counted: 0,
        }
    });
    courses.filter(|course| course.seconds > 0.0).collect()
}

/// The turns of one part.
struct Course {
    part: &'static Part,
    /// Of one turn.
    seconds: f64,
    /// What the next turn is given, if there is time for all of it.
    amount: u64,
    turns: u64,
    counted: u64,
}

impl Course {
    /// What fits into the time that is left.
    fn amount(&self, left_seconds: f64) -> u64 {
        let part = (left_seconds / self.seconds).min(1.0);
        ((self.amount as f64 * part) as u64).max(1)
    }

    /// A turn took so long for `amount`: sets the next one's.
    fn learn(&mut self, amount: u64, took_seconds: f64) {
        let factor = (self.seconds / took_seconds.max(0.01)).min(GROWTH_MAX);
        self.amount = ((amount as f64 * factor) as u64).max(1);
    }

    fn sum(&self) -> String {
        let Part { name, unit, .. } = self.part;
        format!(
            "{name:<12} {:>6} turns {:>12} {unit}",
            self.turns, self.counted
        )
    }
}

struct Soak {
    runner: Runner,
    start: Instant,
    length: Duration,
    /// For what the parts leave behind.
    folder: PathBuf,
    /// Of the next turn.
    seed: u64,
}

impl Soak {
    fn turns(&mut self, courses: &mut [Course]) -> Result<()> {
        let mut next = 0;
        loop {
            let left_seconds = self
                .length
                .saturating_sub(self.start.elapsed())
                .as_secs_f64();
            let count = courses.len();
            let Some(course) = courses.get_mut(next % count) else {
                return Ok(());
            };
            if left_seconds < LEAST_SECONDS {
                return Ok(());
            }
            self.turn(course, left_seconds)?;
            next += 1;
        }
    }

    fn turn(&mut self, course: &mut Course, left_seconds: f64) -> Result<()> {
        let part = course.part;
        let amount = course.amount(left_seconds);
        let seed = self.seed;
        self.seed = self.seed.wrapping_add(1);
        let mut arguments = vec![part.amount.to_owned(), amount.to_string()];
        arguments.extend(part.arguments.iter().map(|argument| (*argument).to_owned()));
        arguments.extend(["--seed".to_owned(), seed.to_string()]);
        let command = format!("{} {}", part.subcommand, arguments.join(" "));
        if matches!(part.subcommand, "crash" | "trace") {
            let folder = self.folder.join(part.name);
            arguments.extend(["--dir".to_owned(), folder.display().to_string()]);
        }
        let began = Instant::now();
        let ended = self
            .runner
            .turn(part, &arguments, self.start + self.length + GRACE)?;
        let took_seconds = began.elapsed().as_secs_f64();
        let clock = self.start.elapsed().as_secs();
        course.turns += 1;
        match ended {
            Ended::Well(counted) => {
                course.counted += counted;
                course.learn(amount, took_seconds);
                println!(
                    "soak: {:>5} s: {command}: {counted} {} in {took_seconds:.1} s",
                    clock, part.unit
                );
                Ok(())
            }
            Ended::CutShort => {
                println!("soak: {clock:>5} s: {command}: cut short");
                Ok(())
            }
            Ended::Badly(status, output) => {
                println!("{output}");
                bail!("{command}: {status}; again by: cargo xtask {command}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn course() -> Course {
        Course {
            part: &PARTS[0],
            seconds: 20.0,
            amount: 100,
            turns: 0,
            counted: 0,
        }
    }

    #[test]
    fn a_turn_is_given_what_fits_into_its_time() {
        let mut course = course();
        assert_eq!((course.amount(1000.0), course.amount(5.0)), (100, 25));
        course.learn(100, 40.0);
        assert_eq!(course.amount(1000.0), 50);
        course.learn(50, 0.001);
        assert_eq!(course.amount(1000.0), 400, "it grows by steps");
        course.learn(1, 900.0);
        assert_eq!(course.amount(1000.0), 1, "never nothing");
    }

    #[test]
    fn turns_are_read_and_only_of_parts_that_exist() {
        assert_eq!(parse_turn("sim=60"), Ok(("sim".to_owned(), 60.0)));
        for wrong in [
            "sim",
            "sim=",
            "nothing=3",
            "sim=-1",
            "sim=x",
            "sim=inf",
            "sim=nan",
        ] {
            assert!(parse_turn(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_part_with_no_time_is_left_out() {
        let arguments = Arguments {
            minutes: 1.0,
            seed: None,
            turn: vec![("sim".to_owned(), 0.0), ("crash".to_owned(), 3.0)],
        };
        let courses = courses(&arguments);
        assert!(courses.iter().all(|course| course.part.name != "sim"));
        assert!(courses.iter().any(|course| course.seconds == 3.0));
        assert_eq!(courses.len(), PARTS.len() - 1);
    }
}
