//! Has Maven fetch the files: it knows the mirrors and proxies of its user.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use kreon_base::{Error, ErrorKind, Result};

use crate::pinned::{JARS, VERSION};

/// Copies the files that a project depends on into a folder.
const GOAL: &str = "org.apache.maven.plugins:maven-dependency-plugin:2.8:copy-dependencies";

/// Fetches into a folder of its own, and gives that its name when `verify` found nothing wrong: whoever looks for the
/// files meanwhile sees all of them or none.
pub fn fetch(cache: &Path, limit: Duration, verify: fn(&Path) -> Result<()>) -> Result<()> {
    let work = cache.join(format!("fetching-{}", std::process::id()));
    let outcome = fetch_into(&work, limit, verify).and_then(|()| {
        let place = cache.join(VERSION);
        match fs::rename(work.join("jars"), &place) {
            // Another process was faster.
            Err(_) if verify(&place).is_ok() => Ok(()),
            done => {
                done.map_err(|error| Error::io(format!("rename to {}", place.display()), error))
            }
        }
    });
    let _ = fs::remove_dir_all(&work);
    outcome
}

fn fetch_into(work: &Path, limit: Duration, verify: fn(&Path) -> Result<()>) -> Result<()> {
    let io = |error| Error::io(format!("write to {}", work.display()), error);
    fs::create_dir_all(work).map_err(io)?;
    fs::write(work.join("pom.xml"), project()).map_err(io)?;
    let output = fs::File::create(work.join("output")).map_err(io)?;
    let errors = output.try_clone().map_err(io)?;
    let mut maven = Command::new("mvn");
    maven.args(["--quiet", "--batch-mode", GOAL, "-DoutputDirectory=jars"]);
    maven.current_dir(work).stdin(Stdio::null());
    let child = maven.stdout(output).stderr(errors).spawn();
    let mut child = child.map_err(|_| not_found("no Maven: cannot run mvn"))?;
    let begun = Instant::now();
    let status = loop {
        match child.try_wait().map_err(io)? {
            Some(status) => break status,
            None if begun.elapsed() > limit => {
                let _ = child.kill();
                let _ = child.wait();
                let message = format!("Maven fetched nothing in {} s", limit.as_secs());
                return Err(not_found(message));
            }
            None => std::thread::sleep(Duration::from_millis(100)),
        }
    };
    if !status.success() {
        let output = fs::read_to_string(work.join("output")).unwrap_or_default();
        let why = output.lines().find(|line| line.contains("ERROR"));
        let message = format!("Maven ended with {status}: {}", why.unwrap_or("no message"));
        return Err(not_found(message));
    }
    verify(&work.join("jars"))
}

fn not_found(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::NotFound, message)
}

/// A project that depends on exactly these files.
fn project() -> String {
    let dependency = |jar: &crate::pinned::Jar| {
        format!(
            "<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version>\
             <exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>\
             </dependency>",
            jar.group, jar.artifact, jar.version
        )
    };
    let dependencies: String = JARS.iter().map(dependency).collect();
    format!(
        "<project><modelVersion>4.0.0</modelVersion><groupId>kreon</groupId>\
         <artifactId>zookeeper-server</artifactId><version>1</version>\
         <dependencies>{dependencies}</dependencies></project>"
    )
}
