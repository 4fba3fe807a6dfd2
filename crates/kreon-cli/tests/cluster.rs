//! A cluster of real processes with a real ZooKeeper: `kreon cluster up`, work, the loss of a primary, `down`.
//!
//! The ZooKeeper is there if `cargo xtask zookeeper --fetch-only` fetched it. Otherwise the test says on the standard error
//! that it was skipped; with `KREON_ZOOKEEPER_REQUIRED` in the environment it fails.

mod fixture;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::Write as _;
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use fixture::{Fixture, Run, bare_command, run};
use kreon_zookeeper::Jars;
use serde_json::Value;

/// Nothing takes so long, on a machine that does other things.
const LIMIT: Duration = Duration::from_secs(60);

/// A cluster of three servers; ended when it goes.
struct House {
    fixture: Fixture,
    url: String,
}

impl House {
    /// None, said aloud, where there is no ZooKeeper.
    fn start() -> Option<Self> {
        if let Err(error) = Jars::find(&Jars::cache()) {
            let required = std::env::var_os("KREON_ZOOKEEPER_REQUIRED").is_some();
            assert!(!required, "{error}");
            // Not by a macro: those are captured.
            let _ = writeln!(std::io::stderr(), "SKIPPED, no ZooKeeper: {error}");
            return None;
        }
        let mut house = Self {
            fixture: Fixture::new(),
            url: String::new(),
        };
        house.up();
        Some(house)
    }

    fn data(&self) -> PathBuf {
        self.fixture.path("cluster")
    }

    /// Starts what does not run. Says where the cluster is.
    fn up(&mut self) {
        let mut command = bare_command();
        command.args([
            "cluster",
            "up",
            "--detach",
            "--servers",
            "3",
            "--memory",
            "64MiB",
        ]);
        command.args(["--zookeeper-port", "0", "--port", "0", "--data"]);
        command
            .arg(self.data())
            .arg("--zookeeper-files")
            .arg(Jars::cache());
        // A port that was free is now and then taken before it is used.
        let told = match run(command, b"") {
            Run {
                code: 0, stdout, ..
            } => stdout,
            failed => panic!("{failed:?}\n{}", self.logs()),
        };
        let url = told
            .split_whitespace()
            .find_map(|word| word.strip_prefix("KREON_CLUSTER="));
        self.url = url.expect("it tells the URL").to_owned();
        assert!(told.contains("cluster down"), "{told}");
        let pages: BTreeSet<_> = told
            .lines()
            .filter_map(|line| line.split_once(" shows its status at http://"))
            .map(|(_, address)| address.trim_end_matches('/'))
            .collect();
        assert_eq!(pages.len(), 3, "{told}");
        for page in pages {
            let page = TcpStream::connect(page);
            assert!(page.is_ok(), "{page:?} of {told}");
        }
    }

    fn logs(&self) -> String {
        let logs = (1..=3).map(|number| self.data().join(format!("server-{number}.log")));
        logs.map(|log| std::fs::read_to_string(log).unwrap_or_default())
            .collect()
    }

    fn run(&self, args: &[&str]) -> Run {
        let mut command = bare_command();
        command.args(["--cluster", &self.url]).args(args);
        run(command, b"")
    }

    fn ok(&self, args: &[&str]) -> String {
        match self.run(args) {
            Run {
                code: 0, stdout, ..
            } => stdout,
            failed => panic!("{args:?}: {failed:?}\n{}", self.logs()),
        }
    }

    fn status(&self) -> Value {
        serde_json::from_str(&self.ok(&["cluster", "status", "--json"])).unwrap()
    }

    /// The status, as soon as `holds` says so.
    fn status_when(&self, holds: impl Fn(&Value) -> bool) -> Value {
        let begun = Instant::now();
        loop {
            let status = self.status();
            if holds(&status) {
                return status;
            }
            assert!(begun.elapsed() < LIMIT, "{status:#}\n{}", self.logs());
        }
    }

    /// Kills a server, as `kill -9` does.
    fn kill(&self, server: u64) {
        let file = self.data().join(format!("run/server-{server}.pid"));
        let line = std::fs::read_to_string(file).unwrap();
        let process = line.split(' ').next().unwrap().to_owned();
        assert!(
            Command::new("kill")
                .args(["-9", &process])
                .status()
                .unwrap()
                .success()
        );
    }
}

impl Drop for House {
    fn drop(&mut self) {
        let mut command = bare_command();
        command.args(["cluster", "down", "--data"]).arg(self.data());
        let _ = command.output();
    }
}

/// Cities as the public list has them, in no order.
fn cities(count: u64) -> String {
    let mut rows = String::from("place,latitude,longitude\n");
    for number in 0..count {
        let mixed = number * 7919 % count;
        let country = ["CH", "GR", "IS", "JP"][(mixed % 4) as usize];
        writeln!(
            rows,
            "\"{country}/Province {}/Town {mixed}\",{}.5,{number}.25",
            mixed % 40,
            mixed % 90
        )
        .unwrap();
    }
    rows
}

const CITIES: u64 = 4_000;

fn in_sync(group: &Value) -> usize {
    group["in_sync"].as_array().unwrap().len()
}

fn groups(status: &Value) -> &Vec<Value> {
    status["groups"].as_array().unwrap()
}

#[test]
fn a_cluster_serves_what_was_imported_also_when_a_primary_is_killed_and_after_all_have_ended() {
    let Some(mut house) = House::start() else {
        return;
    };
    let file = house.fixture.file("cities.csv", cities(CITIES));
    let made = house.ok(&[
        "cluster",
        "create-table",
        "cities",
        "--split-by-sample",
        &file,
    ]);
    assert_eq!(made, "table `cities` of 3 ranges\n");
    let imported = house.ok(&["-r", "cities", "import", &file]);
    assert!(
        imported.starts_with(&format!("imported {CITIES} rows")),
        "{imported}"
    );
    let before = house.ok(&["-r", "cities", "export", "-", "--format", "csv"]);
    assert_eq!(before.lines().count() as u64, CITIES + 1);

    let status = house.status_when(|status| groups(status).iter().all(|group| in_sync(group) == 3));
    assert_eq!(status["warnings"].as_array().unwrap().len(), 0);
    let first = &groups(&status)[0];
    let (group, primary) = (first["group"].clone(), first["primary"].as_u64().unwrap());
    house.kill(primary);

    // Reads and writes wait for the next primary, and nothing is missing.
    assert_eq!(house.ok(&["-r", "cities", "count"]), format!("{CITIES}\n"));
    assert_eq!(
        house
            .ok(&["-r", "cities", "get", "GR/Province 1/Town 1"])
            .trim()
            .split(',')
            .next(),
        Some("1.5")
    );
    assert_eq!(
        house.ok(&["-r", "cities", "export", "-", "--format", "csv"]),
        before
    );
    house.ok(&[
        "-r",
        "cities",
        "put",
        "GR/Crete/Knossos",
        "35.29794,25.16310",
    ]);
    house.ok(&["-r", "cities", "put", "--sync", "AA", "1"]);
    house.ok(&["-r", "cities", "delete", "AA"]);

    let status =
        house.status_when(|status| status["servers"][primary as usize - 1]["is_live"] == false);
    let shrunk = groups(&status)
        .iter()
        .find(|one| one["group"] == group)
        .unwrap();
    assert_ne!(shrunk["primary"].as_u64(), Some(primary));
    assert!(
        in_sync(shrunk) == 2 && shrunk["term"].as_u64() > first["term"].as_u64(),
        "{shrunk}"
    );
    let warnings = status["warnings"].to_string();
    assert!(
        warnings.contains(&format!("server {primary} (down)")),
        "{warnings}"
    );

    // The server comes back, and gets its copies again.
    house.up();
    house.status_when(|status| groups(status).iter().all(|group| in_sync(group) == 3));
    assert!(house.ok(&["cluster", "verify"]).starts_with("OK\n"));

    // All end, and all come back.
    let mut down = bare_command();
    down.args(["cluster", "down", "--data"]).arg(house.data());
    assert_eq!(run(down, b"").ok(), "4 processes ended\n");
    house.up();
    assert_eq!(
        house.ok(&["-r", "cities", "count"]),
        format!("{}\n", CITIES + 1)
    );
    assert_eq!(
        house.ok(&["-r", "cities", "get", "GR/Crete/Knossos"]),
        "35.29794,25.16310\n"
    );
    assert_eq!(house.ok(&["regions"]), "cities\n");
}
