//! Bugs of the servers that a run must find, one after the other.

use std::process::Command;

/// A bug, and the run that finds it.
struct Hunt {
    bug: &'static str,
    /// Words of the command line.
    words: &'static [&'static str],
}

/// Those that real processes can show, with the faults that show them. Others need an interleaving that the explorer of the
/// protocol makes, or a power cut.
const HUNTS: &[Hunt] = &[
    Hunt {
        bug: "AcknowledgedBeforeReceipt",
        words: &["--only", "all but clients"],
    },
    Hunt {
        bug: "BeatBeforeValue",
        words: &["--only", "frozen"],
    },
    Hunt {
        bug: "DrainSkippedAtSeal",
        words: &["--only", "kill -9"],
    },
];

/// Hunts for each bug whose name contains one of `names`, or for all.
///
/// # Errors
/// Some are not found.
pub fn planted(names: &[String], minutes: f64, seed: Option<u64>) -> Result<(), String> {
    if cfg!(not(feature = "planted")) {
        return Err("built without the feature planted".into());
    }
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    let is_wanted = |bug: &str| names.is_empty() || names.iter().any(|name| bug.contains(name));
    let mut missed = Vec::new();
    for hunt in HUNTS.iter().filter(|hunt| is_wanted(hunt.bug)) {
        let mut command = Command::new(&own);
        command.args(["--bug", hunt.bug]).args(hunt.words);
        command.args(["--minutes", &minutes.to_string()]);
        command.args(seed.map(|seed| format!("--seed={seed}")));
        let output = command.output().map_err(|error| error.to_string())?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let first = said.lines().next().unwrap_or("nothing").to_owned();
        match output.status.code() {
            Some(code) if code == i32::from(crate::FOUND) => {
                println!("{}: found: {first}", hunt.bug)
            }
            _ => {
                println!("{}: NOT FOUND ({}): {first}", hunt.bug, output.status);
                missed.push(hunt.bug);
            }
        }
    }
    match missed.is_empty() {
        true => Ok(()),
        false => Err(format!("not found: {}", missed.join(", "))),
    }
}
