//! Round by round: start the writer, kill it, ask the witness, judge.

use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail, ensure};

use super::ack::{ACK_BYTES, Ack};
use super::dice::Dice;
use super::judge::{Round, State, Verdict, judge};
use super::place::Place;
use super::witness::state_of;
use super::workload::THREADS;

#[derive(clap::Args)]
pub struct CrashArguments {
    /// How often to kill.
    #[arg(long, default_value_t = 100)]
    rounds: u32,
    /// Makes the same operations again; the moments of the kills are never quite the same.
    #[arg(long)]
    seed: Option<u64>,
    /// How long a writer lives at most.
    #[arg(long, default_value_t = 1.0)]
    seconds_per_round: f64,
    /// Rounds until a fresh store is begun.
    #[arg(long, default_value_t = 5)]
    fresh_every: u32,
    /// Folder for the store; without it a new one, removed at the end unless something is lost.
    #[arg(long)]
    dir: Option<PathBuf>,
    /// Memory of every process, in bytes, instead of 8 MiB to 1 GiB by chance.
    #[arg(long)]
    memory_bytes: Option<usize>,
}

impl CrashArguments {
    /// A run of a few short rounds.
    pub fn short(rounds: u32) -> Self {
        Self {
            rounds,
            seed: None,
            seconds_per_round: 0.6,
            fresh_every: 5,
            dir: None,
            memory_bytes: None,
        }
    }
}

/// A store of some 20 MB that takes longer than this to open and read hangs.
const WITNESS_SECONDS_MAX: u64 = 120;

/// Memory budgets to choose from, beginning with the least there can be: the less, the more spills.
const MEMORY_BYTES: [usize; 8] = [
    8 << 20,
    8 << 20,
    24 << 20,
    24 << 20,
    96 << 20,
    96 << 20,
    256 << 20,
    1 << 30,
];

/// Sizes of L0 to choose from: so small that spills never end, and what the store chooses by itself.
const L0_BYTES: [Option<usize>; 4] = [None, None, Some(16 << 10), Some(256 << 10)];

/// Runs the loop and prints what it found; fails at the first thing that is lost or wrong.
pub fn run(arguments: &CrashArguments) -> Result<()> {
    ensure!(
        arguments.seconds_per_round > 0.0 && arguments.seconds_per_round <= 3600.0,
        "--seconds-per-round must be more than 0 and at most 3600"
    );
    ensure!(
        arguments.fresh_every > 0,
        "--fresh-every must be at least 1"
    );
    let seed = arguments.seed.unwrap_or_else(|| {
        let now = std::time::UNIX_EPOCH.elapsed().unwrap_or_default();
        u64::from(now.subsec_nanos()) ^ (now.as_secs() << 30)
    });
    let place = Place::new(arguments.dir.as_deref())?;
    println!("crash: seed {seed}, store {}", place.store().display());
    let mut series = Series {
        seed,
        place,
        memory_bytes: arguments.memory_bytes,
        state: State::default(),
        figures: Figures::default(),
    };
    for round in 0..arguments.rounds {
        if round % arguments.fresh_every == 0 {
            series.place.clear()?;
            series.state = State::default();
        }
        series
            .round(round, arguments.seconds_per_round)
            .with_context(|| {
                format!("round {round} of seed {seed}; the store stays where it is")
            })?;
    }
    let figures = series.figures;
    ensure!(
        arguments.rounds == 0 || figures.acknowledged > 0,
        "no operation was ever acknowledged"
    );
    series.place.remove()?;
    println!(
        "crash: {} rounds, {} acknowledged operations checked ({} of them Sync): lost 0; {} Buffered ones gone, \
         each time the end of the log; {} recoveries killed, too",
        arguments.rounds, figures.acknowledged, figures.synced, figures.gone, figures.interrupted
    );
    Ok(())
}

#[derive(Default)]
struct Figures {
    acknowledged: u64,
    synced: u64,
    gone: u64,
    interrupted: u64,
}

struct Series {
    seed: u64,
    place: Place,
    /// Of every process, if it is asked for.
    memory_bytes: Option<usize>,
    /// What the store holds before the next round.
    state: State,
    figures: Figures,
}

impl Series {
    fn round(&mut self, round: u32, seconds_max: f64) -> Result<()> {
        // Another stream of chance than the workload's.
        let mut dice = Dice::of(&[u64::MAX, self.seed, u64::from(round)]);
        let life = match dice.one_in(4) {
            // So early that it may still be opening.
            true => Duration::from_micros(dice.between(0, 50_000)),
            false => Duration::from_micros(dice.between(0, (seconds_max * 1e6) as u64)),
        };
        let acks = self.write_and_kill(round, life, &mut dice)?;
        if dice.one_in(3) {
            self.interrupt_recovery(&mut dice)?;
        }
        let seen = self.ask_witness(&mut dice)?;
        let case = Round {
            seed: self.seed,
            number: round,
            before: &self.state,
            acks: &acks,
        };
        let Verdict {
            state,
            acknowledged,
            synced,
            gone,
        } = judge(&case, &seen).map_err(|fault| anyhow!(fault))?;
        println!(
            "crash: round {round}: killed after {:.3} s, {acknowledged} acknowledged ({synced} Sync), {gone} Buffered gone, \
             {} keys",
            life.as_secs_f64(),
            state.slots.len()
        );
        self.state = state;
        self.figures.acknowledged += acknowledged;
        self.figures.synced += synced;
        self.figures.gone += gone;
        Ok(())
    }

    fn write_and_kill(&self, round: u32, life: Duration, dice: &mut Dice) -> Result<Vec<Ack>> {
        let last = self.state.counters[0].map_or(0, |counter| counter.number);
        let mut command = self.child("crash-writer", dice);
        command
            .args(["--round", &round.to_string()])
            .args([
                "--threads",
                &dice.between(1, u64::from(THREADS) + 1).to_string(),
            ])
            .args(["--counter", &last.to_string()]);
        if let Some(l0_bytes) = L0_BYTES[dice.between(0, L0_BYTES.len() as u64) as usize] {
            command.args(["--l0-bytes", &l0_bytes.to_string()]);
        }
        let mut child = Running::start(command)?;
        std::thread::sleep(life);
        let (status, output) = child.kill()?;
        ensure!(
            status.signal() == Some(9),
            "the writer ended by itself: {status}"
        );
        let lines = std::str::from_utf8(&output).context("acknowledgements are not text")?;
        ensure!(
            lines.len().is_multiple_of(ACK_BYTES),
            "the last acknowledgement is cut"
        );
        lines
            .lines()
            .map(|line| Ack::of_line(line).with_context(|| format!("no acknowledgement: {line}")))
            .collect()
    }

    /// Kills a witness, too: opening a store must be safe to repeat.
    fn interrupt_recovery(&mut self, dice: &mut Dice) -> Result<()> {
        let mut child = Running::start(self.child("crash-witness", dice))?;
        std::thread::sleep(Duration::from_micros(dice.between(0, 100_000)));
        let (status, _) = child.kill()?;
        ensure!(
            status.success() || status.signal() == Some(9),
            "the witness failed: {status}"
        );
        self.figures.interrupted += u64::from(!status.success());
        Ok(())
    }

    fn ask_witness(&self, dice: &mut Dice) -> Result<State> {
        let mut command = self.child("crash-witness", dice);
        if dice.one_in(2) {
            command.arg("--close");
        }
        let mut child = Running::start(command)?;
        let limit = Duration::from_secs(WITNESS_SECONDS_MAX);
        let (status, output) = child.wait_at_most(limit)?;
        ensure!(status.success(), "the witness failed: {status}");
        let text = String::from_utf8(output).context("the testimony is not text")?;
        state_of(&text).context("the testimony is not whole")
    }

    /// This program once more, with another part to play.
    fn child(&self, part: &str, dice: &mut Dice) -> Command {
        // Not the path of the program: a build may have replaced what stands there.
        let mut command = Command::new("/proc/self/exe");
        let by_chance = MEMORY_BYTES[dice.between(0, MEMORY_BYTES.len() as u64) as usize];
        let memory = self.memory_bytes.unwrap_or(by_chance);
        command
            .arg(part)
            .arg("--store")
            .arg(self.place.store())
            .args(["--seed", &self.seed.to_string()])
            .args(["--memory-bytes", &memory.to_string()]);
        command
    }
}

/// A child whose output is read as it comes, so that it never waits for us. Killed when dropped.
struct Running {
    child: Child,
    output: Option<JoinHandle<std::io::Result<Vec<u8>>>>,
}

impl Running {
    fn start(mut command: Command) -> Result<Self> {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot start this program once more")?;
        let output = child.stdout.take().map(|mut stdout| {
            std::thread::spawn(move || {
                let mut bytes = Vec::new();
                stdout.read_to_end(&mut bytes).map(|_| bytes)
            })
        });
        Ok(Self { child, output })
    }

    /// Sends SIGKILL; a child that has already ended shows that in its status.
    fn kill(&mut self) -> Result<(ExitStatus, Vec<u8>)> {
        self.child.kill()?;
        self.finish()
    }

    fn wait_at_most(&mut self, limit: Duration) -> Result<(ExitStatus, Vec<u8>)> {
        let start = Instant::now();
        while self.child.try_wait()?.is_none() {
            if start.elapsed() > limit {
                bail!("no end after {} s: it hangs", limit.as_secs());
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        self.finish()
    }

    fn finish(&mut self) -> Result<(ExitStatus, Vec<u8>)> {
        let status = self.child.wait()?;
        let Some(Ok(output)) = self.output.take().map(JoinHandle::join) else {
            bail!("the output of a child was not read");
        };
        Ok((status, output?))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Only of use after a failure, which is told already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
