//! Commands of the system, and what they say when they fail.

use std::process::{Command, Stdio};

/// Runs a command and returns what it wrote.
///
/// # Errors
/// It cannot be started or fails, with its words.
pub fn run(words: &[&str]) -> Result<String, String> {
    let [program, arguments @ ..] = words else {
        return Err("no command".into());
    };
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null());
    let output = command
        .output()
        .map_err(|error| format!("{program}: {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!(
        "{}: {}: {}",
        words.join(" "),
        output.status,
        said.trim()
    ))
}

/// Runs one of whose failure nothing depends: what it would undo may not be there.
pub fn try_to(words: &[&str]) {
    let _ = run(words);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_fails_says_why() {
        assert_eq!(run(&["echo", "a", "b"]).unwrap(), "a b\n");
        let error = run(&["ls", "/no/such/folder"]).unwrap_err();
        assert!(error.contains("/no/such/folder"), "{error}");
        assert!(run(&["no-such-program"]).is_err());
    }
}
