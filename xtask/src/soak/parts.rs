//! What a soak is made of. Each part is a command that anybody can give again.

/// A command, how to make it longer, and how to read what it says.
pub struct Part {
    pub name: &'static str,
    /// Subcommand of `cargo xtask`, the same of the program.
    pub subcommand: &'static str,
    pub program: Program,
    /// The option that makes it longer.
    pub amount: &'static str,
    /// What the first turn is given: a few seconds' worth. Later ones follow from how long that took.
    pub first_amount: u64,
    /// What one turn takes, unless the command line says otherwise.
    pub turn_seconds: f64,
    /// Further arguments.
    pub arguments: &'static [&'static str],
    /// What it counts.
    pub unit: &'static str,
    /// Reads the count; `None` if there is none in this line of the output.
    pub count: fn(&str) -> Option<u64>,
}

/// Who runs a part.
#[derive(Clone, Copy, PartialEq)]
pub enum Program {
    Xtask,
    Torture,
}

/// In the order of their turns. A new part is a new entry.
pub const PARTS: &[Part] = &[
    Part {
        name: "crash",
        subcommand: "crash",
        program: Program::Xtask,
        amount: "--rounds",
        first_amount: 5,
        turn_seconds: 15.0,
        arguments: &["--seconds-per-round", "0.8"],
        unit: "acknowledged operations",
        count: crash_count,
    },
    Part {
        name: "sim",
        subcommand: "sim",
        program: Program::Torture,
        amount: "--states",
        first_amount: 60,
        turn_seconds: 20.0,
        arguments: &[],
        unit: "crash states",
        count: total,
    },
    Part {
        name: "faults",
        subcommand: "faults",
        program: Program::Torture,
        amount: "--share",
        first_amount: 100,
        turn_seconds: 10.0,
        arguments: &[],
        unit: "faults",
        count: total,
    },
    Part {
        name: "history",
        subcommand: "history",
        program: Program::Torture,
        amount: "--seconds",
        first_amount: 5,
        turn_seconds: 15.0,
        arguments: &[],
        unit: "judged calls",
        count: total,
    },
    Part {
        name: "metamorphic",
        subcommand: "metamorphic",
        program: Program::Torture,
        amount: "--runs",
        first_amount: 2,
        turn_seconds: 10.0,
        arguments: &[],
        unit: "operations under other settings",
        count: total,
    },
    Part {
        name: "trace",
        subcommand: "trace",
        program: Program::Torture,
        amount: "--states",
        first_amount: 30,
        turn_seconds: 15.0,
        arguments: &["--seconds", "2"],
        unit: "crash states of a traced store",
        count: total,
    },
    Part {
        name: "errors",
        subcommand: "trace",
        program: Program::Torture,
        amount: "--runs",
        first_amount: 4,
        turn_seconds: 8.0,
        arguments: &["--inject", "eio"],
        unit: "failures of real requests",
        count: total,
    },
];

/// The line of `kreon-torture` that sums up.
fn total(line: &str) -> Option<u64> {
    let mut words = line.split_whitespace();
    let count = (words.next()? == "total").then(|| words.next())??;
    count.parse().ok()
}

/// `crash: 5 rounds, 4211 acknowledged operations checked ...`
fn crash_count(line: &str) -> Option<u64> {
    let (_, rest) = line.strip_prefix("crash: ")?.split_once(" rounds, ")?;
    rest.split(' ').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_read_from_the_lines_that_sum_up_only() {
        assert_eq!(total("total                         20000"), Some(20_000));
        assert_eq!(total("torn                          20000"), None);
        assert_eq!(total("0 failed; 1.0 s, 3 a second"), None);
        let line = "crash: 5 rounds, 4211 acknowledged operations checked (3 of them Sync): lost 0";
        assert_eq!(crash_count(line), Some(4211));
        assert_eq!(crash_count("crash: round 3: killed after 0.2 s"), None);
        assert_eq!(crash_count("crash: seed 4, store /var/tmp/x"), None);
    }
}
