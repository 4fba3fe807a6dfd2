//! Why tests fail that are to fail here, and why some do not run.

use super::outcome::Failure;

/// Failures by the beginning of the test's name.
const BY_NAME: &[(&str, &str)] = &[
    ("ZSCORE", SHORTEST),
    ("ZMSCORE", SHORTEST),
    (
        "Redis should lazy expire keys",
        "expired keys are gone at once: `DBSIZE` does not count them",
    ),
    ("INCR uses shared objects", "how values are held in memory"),
    ("ZRANGESTORE RESP3", FOLLOWS),
    ("Hash ziplist of various encodings - sanitize dump", FOLLOWS),
    ("List ziplist of various encodings - sanitize dump", FOLLOWS),
];

const SHORTEST: &str = "the shortest digits that read back as the same number, as from Redis 7.2 on; these tests want 17";
const FOLLOWS: &str =
    "wants what a test before it, which failed by a command that is not there, leaves behind";
const COMMANDS: &str = "commands that are not there";
const PARTS: &str = "subcommands and parameters that are not there";

/// The class of a failure, and within it what was missing; `None` if it is not known why it failed.
pub fn of_failure(failure: &Failure) -> Option<(&'static str, Option<String>)> {
    if let Some(command) = &failure.unknown {
        return Some((COMMANDS, Some(command.to_uppercase())));
    }
    let by_name = BY_NAME
        .iter()
        .find(|(name, _)| failure.test.starts_with(name));
    if let Some((_, reason)) = by_name {
        return Some((reason, None));
    }
    missing_part(&failure.message).map(|part| (PARTS, Some(part)))
}

/// A subcommand or a parameter that an error names. The tests cut off the first ten bytes of errors.
fn missing_part(message: &str) -> Option<String> {
    if let Some((_, name)) = message.split_once("arguments for CONFIG SET - '") {
        return Some(format!("CONFIG {}", name.split('\'').next()?));
    }
    let (_, rest) = message.split_once(" subcommand '")?;
    let (name, rest) = rest.split_once('\'')?;
    let (_, rest) = rest.split_once("Try ")?;
    Some(format!(
        "{} {}",
        rest.split(' ').next()?,
        name.to_uppercase()
    ))
}

/// Why a test did not run, from what the tests say.
pub fn of_skipped(text: &str) -> &'static str {
    const REASONS: &[(&str, &str)] = &[
        ("needs:repl", "reads what is sent to replicas"),
        ("needs:config-maxmemory", "wants keys thrown out for others"),
        (
            "external server",
            "starts servers of its own, with settings of Redis",
        ),
        ("large memory", "needs more than 100 MB"),
    ];
    let found = REASONS.iter().find(|(sign, _)| text.contains(sign));
    found.map_or("other reasons", |(_, reason)| reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(test: &str, message: &str) -> Failure {
        Failure {
            test: test.to_owned(),
            message: message.to_owned(),
            unknown: None,
        }
    }

    #[test]
    fn errors_name_what_is_missing() {
        let config = "n option or number of arguments for CONFIG SET - 'lua-time-limit'";
        assert_eq!(
            missing_part(config).as_deref(),
            Some("CONFIG lua-time-limit")
        );
        let debug = "n subcommand 'protocol'. Try DEBUG HELP.";
        assert_eq!(missing_part(debug).as_deref(), Some("DEBUG PROTOCOL"));
    }

    #[test]
    fn a_failure_that_is_not_listed_has_no_reason() {
        assert_eq!(
            of_failure(&failure("SET works", "Expected '1' to be equal to '2'")),
            None
        );
        assert!(of_failure(&failure("ZSCORE - listpack", "Expected")).is_some());
    }
}
