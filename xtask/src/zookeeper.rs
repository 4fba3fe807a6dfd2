//! Fetches ZooKeeper, and runs servers of it.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use kreon::ErrorKind;
use kreon_zookeeper::{Ensemble, Jars, Settings};
use signal_hook::consts::{SIGINT, SIGTERM};

/// How this command ends where there is no ZooKeeper to be had.
const CODE_NOT_FOUND: i32 = 3;

/// How long tests wait for it.
const FETCH_MAX: Duration = Duration::from_secs(180);

/// `cargo xtask zookeeper`.
#[derive(clap::Args)]
pub struct Arguments {
    /// How many servers: 1, or an ensemble of 3 or 5.
    #[arg(long, default_value_t = 1)]
    servers: usize,
    /// The port of the first server on the loopback address; the others have the next ones.
    #[arg(long, default_value_t = 2181)]
    port: u16,
    /// Folder of the data; kept. Without: `data` beside the fetched files.
    #[arg(long)]
    data: Option<PathBuf>,
    /// Unit of the times of the servers: sessions are granted 2 to 20 of it.
    #[arg(long, default_value_t = 200)]
    tick_ms: u32,
    /// Fetch only.
    #[arg(long)]
    fetch_only: bool,
    /// How long fetching may take, and starting.
    #[arg(long, default_value_t = 180)]
    limit_s: u64,
}

pub fn run(arguments: &Arguments) -> Result<()> {
    let limit = Duration::from_secs(arguments.limit_s);
    let jars = fetch(limit)?;
    if arguments.fetch_only {
        return Ok(());
    }
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&stop)).context("cannot hear of Ctrl-C")?;
    }
    let data = arguments.data.clone();
    let data = data.unwrap_or_else(|| Jars::cache().join("data"));
    let settings = Settings {
        tick_ms: arguments.tick_ms,
        ..Settings::default()
    };
    let begun = Instant::now();
    let (count, port) = (arguments.servers, Some(arguments.port));
    let mut ensemble = Ensemble::start(&jars, &settings, &data, count, port, limit)?;
    let seconds = begun.elapsed().as_secs_f64();
    println!("serving after {seconds:.1} s, data in {}", data.display());
    println!("{}", ensemble.addresses());
    while !stop.load(Ordering::Relaxed) {
        for server in &mut ensemble.servers {
            let address = server.address();
            let ended = server.ended()?;
            // Ctrl-C reaches the servers, too.
            let is_over = stop.load(Ordering::Relaxed) || ended.is_none();
            ensure!(is_over, "the server at {address} ended");
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    Ok(())
}

/// The files, fetched if need be. Ends the process where there are none to be had.
fn fetch(limit: Duration) -> Result<Jars> {
    match Jars::fetch(&Jars::cache(), limit) {
        Ok(jars) => Ok(jars),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            eprintln!("no ZooKeeper on this machine: {error}");
            std::process::exit(CODE_NOT_FOUND)
        }
        Err(error) => Err(error.into()),
    }
}

/// Fetches for the tests, which do not themselves. Whether there is a ZooKeeper.
pub fn fetch_for_tests() -> Result<bool> {
    match Jars::fetch(&Jars::cache(), FETCH_MAX) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            println!("SKIPPED: tests with a real ZooKeeper, for there is none: {error}");
            Ok(false)
        }
        Err(error) => Err(error.into()),
    }
}
