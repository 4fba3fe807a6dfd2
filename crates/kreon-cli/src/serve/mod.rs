//! `kreon serve`: a store for clients of Redis, until a signal or `SHUTDOWN` ends it.

mod settings;

use std::fs;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use clap::Args;
use kreon::{Error, Store};
use kreon_server::{Limits, Server, Settings, TlsFiles};

use crate::failure::{Failure, Result};
use crate::interrupt::Interrupt;
use crate::options::{Shared, StoreOptions};
use crate::sink::Sink;
use settings::ServeSettings;

/// Memory of the store, in bytes.
const MEMORY_BYTES: usize = 1 << 30;
/// How long a signal waits to be seen.
const PATIENCE: Duration = Duration::from_millis(50);

/// Serve a store to clients of Redis, until SIGTERM or SIGINT
///
/// Any client of Redis can be used, redis-cli for instance. SIGTERM answers what was received and makes everything durable.
/// Of the settings below all may stand in a file (TOML: `listen = ["10.0.0.1:6379"]`); what is given here wins.
#[derive(Debug, Args)]
pub struct Serve {
    /// The store: a file or a block device; made if there is none
    #[arg(value_name = "STORE")]
    path: Option<PathBuf>,
    /// The file of settings
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// More on standard error; twice for even more
    #[arg(short, long, action = clap::ArgAction::Count)]
    verbose: u8,
    #[command(flatten)]
    settings: ServeSettings,
}

impl Serve {
    /// How much is told on standard error: the only option that it shares with others.
    pub fn given(&self) -> Shared {
        Shared {
            store: StoreOptions {
                verbose: self.verbose,
                ..StoreOptions::default()
            },
            ..Shared::default()
        }
    }

    pub fn run(&self, shared: &Shared, out: &mut Sink) -> Result<()> {
        let interrupt = Interrupt::on_signals()?;
        let file = match &self.config {
            Some(file) => ServeSettings::read(file)?,
            None => ServeSettings::default(),
        };
        let given = self.settings.clone().or(file);
        let path = self.path.clone().or_else(|| given.store.clone());
        let path = path.or_else(|| shared.store_path()).ok_or_else(|| {
            Failure::usage("no store named: give its path, here or in the file of --config")
        })?;
        let settings = server_settings(&given)?;
        let memory_bytes = given.memory.or(shared.store.memory).unwrap_or(MEMORY_BYTES);
        let options = Store::options().memory_bytes(memory_bytes).status(true);
        let options = match given.volume_max {
            Some(bytes) => options.volume_bytes_max(bytes as u64),
            None => options,
        };
        let server = Server::start(options, &path, settings.clone())?;
        for address in server.addresses() {
            out.line(&format!("serving {} at {address}", path.display()))?;
        }
        if let Some(unix) = &settings.unix {
            out.line(&format!("serving {} at {}", path.display(), unix.display()))?;
        }
        if let Some(address) = server.metrics_address() {
            out.line(&format!("status page at http://{address}/"))?;
        }
        out.flush()?;
        while interrupt.check().is_ok() && !server.is_ending() {
            sleep(PATIENCE);
        }
        server.end()?;
        out.line(&format!("{} is closed", path.display()))?;
        Ok(())
    }
}

fn server_settings(given: &ServeSettings) -> Result<Settings> {
    let default = Settings::default();
    let limits = Limits::default();
    let tls = match (&given.tls_cert, &given.tls_key) {
        (Some(certificates), Some(key)) => Some(TlsFiles {
            certificates: certificates.clone(),
            key: key.clone(),
        }),
        (None, None) => None,
        _ => {
            return Err(Failure::usage(
                "--tls-cert and --tls-key belong together: only one is given",
            ));
        }
    };
    let password = given.auth_file.as_deref().map(password).transpose()?;
    let listen = match (&given.listen, &given.unix) {
        (Some(listen), _) => listen.clone(),
        (None, Some(_)) => Vec::new(),
        (None, None) => default.listen,
    };
    Ok(Settings {
        listen,
        unix: given.unix.clone(),
        threads: given.threads.unwrap_or(default.threads),
        databases: given.databases.unwrap_or(default.databases),
        persistence: given
            .durability
            .map_or(default.persistence, |given| given.0),
        password,
        is_protected: !given.unprotected.unwrap_or(false),
        tls,
        metrics: given.metrics.clone(),
        backups: given.backups.clone(),
        has_debug: given.debug.unwrap_or(false),
        limits: Limits {
            clients_max: given.clients_max.unwrap_or(limits.clients_max),
            idle_max: given
                .idle_s
                .filter(|seconds| *seconds > 0)
                .map(Duration::from_secs),
            args_max: given.args_max.unwrap_or(limits.args_max),
            bulk_bytes_max: given.bulk_max.unwrap_or(limits.bulk_bytes_max),
            request_bytes_max: given.request_max.unwrap_or(limits.request_bytes_max),
            output_bytes_max: given.output_max.unwrap_or(limits.output_bytes_max),
            buffers_bytes_max: given.buffers_max.unwrap_or(limits.buffers_bytes_max),
        },
        end_max: default.end_max,
    })
}

/// The first line of a file.
fn password(file: &Path) -> Result<Vec<u8>> {
    let text =
        fs::read(file).map_err(|error| Error::io(format!("read {}", file.display()), error))?;
    let line = text.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if line.is_empty() {
        let what = format!(
            "{}: the first line is to be the password, and is empty",
            file.display()
        );
        return Err(Failure::usage(what));
    }
    Ok(line.to_vec())
}
