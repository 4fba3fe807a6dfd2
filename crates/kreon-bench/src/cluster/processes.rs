//! The processor time of the processes that make up a store.

use anyhow::{Context, Result};

/// Seconds of processor time, by what a process does.
#[derive(Clone, Copy, Debug, Default)]
pub struct CpuSeconds {
    pub primary: f64,
    pub backup: f64,
    /// A coordinator, and servers without a copy.
    pub others: f64,
}

/// Numbers of processes.
#[derive(Clone, Debug, Default)]
pub struct Servers {
    pub primary: Vec<u32>,
    pub backup: Vec<u32>,
    pub others: Vec<u32>,
}

impl Servers {
    /// What all of them have used so far.
    ///
    /// # Errors
    /// One of them has ended.
    pub fn cpu_seconds(&self) -> Result<CpuSeconds> {
        let sum = |numbers: &[u32]| -> Result<f64> {
            numbers.iter().map(|pid| cpu_seconds_of(*pid)).sum()
        };
        Ok(CpuSeconds {
            primary: sum(&self.primary).context("the primary")?,
            backup: sum(&self.backup).context("a backup")?,
            others: sum(&self.others).context("another server")?,
        })
    }
}

/// User and system time of all threads of a process.
fn cpu_seconds_of(pid: u32) -> Result<f64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))
        .with_context(|| format!("looking at the process {pid}"))?;
    let ticks = ticks_of(&stat).with_context(|| format!("no times in {stat:?}"))?;
    // The kernel counts them for programs in hundredths of a second, whatever its own clock is.
    Ok(ticks as f64 / 100.0)
}

/// The 14th and 15th field. The second one is a name in brackets, which may hold blanks and brackets.
fn ticks_of(stat: &str) -> Option<u64> {
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_ascii_whitespace().skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some(user + system)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_blanks_and_brackets_hide_no_times() {
        let stat = "17 (a ) b) S 1 17 17 0 -1 0 0 0 0 0 30 12 0 0 20 0 5 0 99 0 0";
        assert_eq!(ticks_of(stat), Some(42));
        assert_eq!(ticks_of("17 (a) S 1"), None);
    }

    #[test]
    fn this_process_has_used_some_time() {
        let mut n = 1_u64;
        let start = std::time::Instant::now();
        while start.elapsed().as_millis() < 30 {
            n = crate::keys::hash(n);
        }
        assert!(cpu_seconds_of(std::process::id()).unwrap() > 0.0, "{n}");
    }
}
