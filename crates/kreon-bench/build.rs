//! Which commit the bench is built from: figures without it could be anybody's.

use std::process::Command;

fn main() {
    // Sources change between commits, and the log of the branch with each of them.
    println!("cargo:rerun-if-changed=..");
    if let Some(log) = git(&["rev-parse", "--git-path", "logs/HEAD"]) {
        println!("cargo:rerun-if-changed={log}");
    }
    let commit = git(&["rev-parse", "--short=12", "HEAD"]).unwrap_or_else(|| "unknown".to_owned());
    let changed = git(&["status", "--porcelain", "--untracked-files=no"]);
    let mark = match changed.is_some_and(|files| !files.is_empty()) {
        true => "-changed",
        false => "",
    };
    println!("cargo:rustc-env=KREON_COMMIT={commit}{mark}");
}

/// What git says, if it is there.
fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}
