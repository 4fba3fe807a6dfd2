//! One part, once: a child, given so much to do as fits into its time.

use std::io::Read;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::parts::{Part, Program};
use crate::workspace::{cargo, metadata};

/// How a turn ended.
pub enum Ended {
    /// By itself, well; so much was counted.
    Well(u64),
    /// By itself, badly; this is what it said.
    Badly(ExitStatus, String),
    /// The time was over before it had ended.
    CutShort,
}

/// Runs parts.
pub struct Runner {
    torture: PathBuf,
}

impl Runner {
    /// Builds what the parts need.
    pub fn build() -> Result<Self> {
        let mut build = cargo();
        build.args([
            "build",
            "--quiet",
            "--release",
            "--package",
            "kreon-torture",
            // As `cargo xtask metamorphic` has it: the same seed takes the same course.
            "--features",
            "comparison",
        ]);
        let status = build.status().context("starting cargo")?;
        anyhow::ensure!(status.success(), "building kreon-torture: {status}");
        let target = metadata(&["--no-deps"])?.target_directory;
        Ok(Self {
            torture: target.join("release/kreon-torture"),
        })
    }

    /// Runs `part` until it ends or `deadline` comes.
    pub fn turn(&self, part: &Part, arguments: &[String], deadline: Instant) -> Result<Ended> {
        let mut command = match part.program {
            // Not the path of the program: a build may have replaced what stands there.
            Program::Xtask => Command::new("/proc/self/exe"),
            Program::Torture => Command::new(&self.torture),
        };
        let mut child = command
            .arg(part.subcommand)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("starting {}", part.name))?;
        let output = child.stdout.take().map(|mut stdout| {
            std::thread::spawn(move || {
                let mut bytes = Vec::new();
                // What was read before a failure is all that can be shown.
                let _ = stdout.read_to_end(&mut bytes);
                String::from_utf8_lossy(&bytes).into_owned()
            })
        });
        let Some(status) = wait_until(&mut child, deadline)? else {
            return Ok(Ended::CutShort);
        };
        let output = output
            .and_then(|thread| thread.join().ok())
            .unwrap_or_default();
        Ok(match status.success() {
            true => Ended::Well(output.lines().rev().find_map(part.count).unwrap_or(0)),
            false => Ended::Badly(status, output),
        })
    }
}

/// Waits for the child, and kills it at `deadline`: then `None`.
fn wait_until(child: &mut Child, deadline: Instant) -> Result<Option<ExitStatus>> {
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if Instant::now() >= deadline {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::soak::parts::PARTS;

    /// How `program subcommand arguments` ends, with the counts of `sim`.
    fn ended(program: &str, subcommand: &'static str, arguments: &[&str]) -> Ended {
        let runner = Runner {
            torture: program.into(),
        };
        let sim = PARTS.iter().find(|part| part.name == "sim").unwrap();
        let part = Part { subcommand, ..*sim };
        let arguments: Vec<_> = arguments.iter().map(|a| (*a).to_owned()).collect();
        let deadline = Instant::now() + Duration::from_secs(3);
        runner.turn(&part, &arguments, deadline).unwrap()
    }

    #[test]
    fn turns_are_counted_and_failures_and_hangs_are_told() {
        assert!(matches!(ended("echo", "total", &["7"]), Ended::Well(7)));
        assert!(matches!(ended("echo", "nothing", &[]), Ended::Well(0)));
        let Ended::Badly(status, output) = ended("sh", "-c", &["echo lost; exit 4"]) else {
            panic!("not noticed");
        };
        assert_eq!((status.code(), output.as_str()), (Some(4), "lost\n"));
        assert!(matches!(ended("sleep", "60", &[]), Ended::CutShort));
    }
}
