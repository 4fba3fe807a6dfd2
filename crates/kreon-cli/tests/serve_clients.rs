//! Clients that nobody here wrote, each with a session of all groups of commands (`tests/clients`).
//!
//! Each is fetched once from its registry into the folder for builds; where the language or the registry is missing the
//! test says so and passes.

mod fixture;
mod served;

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use fixture::Fixture;
use served::Served;

/// How long a client may take to come, and to be compiled.
const FETCH_S_MAX: &str = "300";

/// How long a session may take.
const SESSION_S_MAX: &str = "120";

/// A client that is there, or why not.
type Fetched = Result<Command, String>;

/// Runs a command for a limited time. Why it did not do its work, if so.
fn work(command: &[&str], folder: &Path) -> Result<(), String> {
    let mut limited = Command::new("timeout");
    limited.arg(FETCH_S_MAX).args(command).current_dir(folder);
    let output = limited.stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("timeout: {error}"))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(format!(
            "{} ended with {}: {}",
            command.join(" "),
            output.status,
            String::from_utf8_lossy(&output.stderr).trim_end()
        )),
    }
}

/// A folder for a client that outlives the test, with its session in it.
fn folder(name: &str, file: &str, session: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join("clients")
        .join(name);
    fs::create_dir_all(&folder).unwrap();
    let path = folder.join(file);
    // The same bytes again would have it compiled again.
    if fs::read(&path).ok().as_deref() != Some(session.as_bytes()) {
        fs::write(path, session).unwrap();
    }
    folder
}

/// A session's command, its file standing in `folder`.
fn command(folder: &Path, words: &[&str]) -> Command {
    let mut command = Command::new("timeout");
    command.arg(SESSION_S_MAX).args(words).current_dir(folder);
    command
}

fn python() -> Fetched {
    const CLIENT: &str = "redis==8.1.0";
    let folder = folder("python", "session.py", include_str!("clients/session.py"));
    let client = folder.join(CLIENT);
    if !client.exists() {
        let pip = [
            "python3",
            "-m",
            "pip",
            "--disable-pip-version-check",
            "install",
            "--quiet",
        ];
        let whole = [&pip[..], &["--retries", "1", "--target", CLIENT, CLIENT]].concat();
        // A half-fetched client is none.
        work(&whole, &folder).inspect_err(|_| drop(fs::remove_dir_all(&client)))?;
    }
    let mut session = command(&folder, &["python3", "session.py"]);
    session.env("PYTHONPATH", client);
    Ok(session)
}

fn node() -> Fetched {
    const CLIENT: &str = "ioredis@6.0.0";
    let folder = folder("node", "session.js", include_str!("clients/session.js"));
    let done = folder.join(CLIENT);
    if !done.exists() {
        let npm = [
            "npm",
            "install",
            "--prefix",
            ".",
            "--no-audit",
            "--no-fund",
            "--fetch-retries=1",
        ];
        work(&[&npm[..], &[CLIENT]].concat(), &folder)?;
        fs::write(done, "").unwrap();
    }
    Ok(command(&folder, &["node", "session.js"]))
}

fn go() -> Fetched {
    const CLIENT: &str = "github.com/redis/go-redis/v9@v9.23.0";
    let folder = folder("go", "session.go", include_str!("clients/session.go"));
    if !folder.join("go.sum").exists() {
        fs::write(folder.join("go.mod"), "module session\n").unwrap();
        work(&["go", "get", CLIENT], &folder)?;
    }
    work(&["go", "build", "-o", "session", "session.go"], &folder)?;
    Ok(command(&folder, &["./session"]))
}

/// Runs the session of a client against a server.
fn converse(client: Fetched) {
    let mut session = match client {
        Ok(session) => session,
        Err(reason) => {
            let _ = writeln!(std::io::stderr(), "SKIPPED, no such client here: {reason}");
            return;
        }
    };
    let fixture = Fixture::new();
    let served = Served::start(&fixture, &[]);
    let output = session.arg(served.port.to_string()).output().unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    let wrong = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {told}{wrong}", output.status);
    assert!(told.ends_with(" replies\n"), "{told}{wrong}");
    served.end();
}

#[test]
fn python_redis_runs_a_session_of_all_groups() {
    converse(python());
}

#[test]
fn node_ioredis_runs_a_session_of_all_groups() {
    converse(node());
}

#[test]
fn go_redis_runs_a_session_of_all_groups() {
    converse(go());
}
