//! What a run of a unit printed, taken apart.

/// How the tests of a unit ended.
#[derive(Default, Debug)]
pub struct Outcome {
    pub passed: usize,
    pub failures: Vec<Failure>,
    /// Why each test, or block of tests, was left out.
    pub skipped: Vec<String>,
    /// All of what was printed.
    pub output: String,
}

/// A test that failed.
#[derive(Debug, PartialEq)]
pub struct Failure {
    pub test: String,
    /// The first line of what was wrong.
    pub message: String,
    /// A command that the test wanted and the server does not know.
    pub unknown: Option<String>,
}

impl Outcome {
    /// Reads the output of Redis' test command.
    pub fn read(output: &str) -> Self {
        let mut outcome = Self {
            output: output.to_owned(),
            ..Self::default()
        };
        // What follows tells all failures once more.
        let (told, rest) = output
            .split_once("\n                   The End")
            .unwrap_or((output, ""));
        let mut lines = told.lines();
        while let Some(line) = lines.next() {
            let Some((kind, text)) = line
                .strip_prefix('[')
                .and_then(|line| line.split_once("]: "))
            else {
                continue;
            };
            match kind {
                "ok" => outcome.passed += 1,
                "err" => {
                    let test = text
                        .rsplit_once(" in tests/")
                        .map_or(text, |(test, _)| test);
                    let message = lines.next().unwrap_or_default().to_owned();
                    outcome.failures.push(Failure {
                        test: test.to_owned(),
                        message,
                        unknown: None,
                    });
                }
                "unknown" => {
                    if let Some(failure) = outcome.failures.last_mut() {
                        failure.unknown = Some(text.to_owned());
                    }
                }
                "ignore" | "skip" => outcome.skipped.push(text.to_owned()),
                "exception" | "TIMEOUT" => outcome.failures.push(Failure::of_unit(text)),
                _ => {}
            }
        }
        if rest.is_empty() && outcome.failures.is_empty() {
            outcome
                .failures
                .push(Failure::of_unit("it ended before its end"));
        }
        outcome
    }

    pub fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.failures.extend(other.failures);
        self.skipped.extend(other.skipped);
        self.output += &other.output;
    }
}

impl Failure {
    fn of_unit(message: &str) -> Self {
        Self {
            test: "the unit itself".to_owned(),
            message: message.to_owned(),
            unknown: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = "\
[ready]: 12
Testing unit/x
[ok]: SET works (3 ms)
[err]: MOVE works in tests/unit/x.tcl
ERR unknown command 'move'
    while executing
[unknown]: move
[ignore]: WAIT works: Tag: needs:repl denied
[err]: GET works in tests/unit/x.tcl
Expected 1
[1/1 done]: unit/x (1 seconds)

                   The End

*** [err]: MOVE works in tests/unit/x.tcl
";

    #[test]
    fn each_test_counts_once() {
        let outcome = Outcome::read(OUTPUT);
        assert_eq!(outcome.passed, 1);
        assert_eq!(outcome.skipped, ["WAIT works: Tag: needs:repl denied"]);
        let [of_move, get] = &outcome.failures[..] else {
            panic!("{outcome:?}");
        };
        assert_eq!(of_move.unknown.as_deref(), Some("move"));
        assert_eq!(
            (get.test.as_str(), get.message.as_str()),
            ("GET works", "Expected 1")
        );
        assert_eq!(get.unknown, None);
    }

    #[test]
    fn a_unit_that_ends_early_has_failed() {
        let outcome = Outcome::read("[ok]: SET works (3 ms)\n");
        assert_eq!(outcome.failures.len(), 1);
    }
}
