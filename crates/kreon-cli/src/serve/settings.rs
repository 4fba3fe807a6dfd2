//! Settings of `kreon serve`: from flags and from a file. Flags win.

use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use clap::Args;
use kreon::{Error, Result};
use kreon_server::Persistence;
use serde::{Deserialize, Deserializer};

use crate::size::{deserialize_size, parse_size};

/// What may stand in the file, and before it on the command line.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ServeSettings {
    // An argument on the command line.
    #[arg(skip)]
    pub store: Option<PathBuf>,
    /// Where it listens, once for each address [default: 127.0.0.1:6379, or nowhere with --unix]
    #[arg(long, value_name = "ADDRESS")]
    pub listen: Option<Vec<String>>,
    /// Path of a Unix socket to listen at, for the same user
    #[arg(long, value_name = "PATH")]
    pub unix: Option<PathBuf>,
    /// Memory of the store [default: 1GiB]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    #[serde(default, deserialize_with = "deserialize_size")]
    pub memory: Option<usize>,
    /// Never let the volume grow beyond this
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    #[serde(default, deserialize_with = "deserialize_size")]
    pub volume_max: Option<usize>,
    /// When an acknowledged write survives a crash: `sync` (before its reply), `buffered`, or `interval:MS`
    /// [default: buffered]
    #[arg(long, value_name = "WHEN")]
    pub durability: Option<When>,
    /// File with the password in its first line
    #[arg(long, value_name = "FILE")]
    pub auth_file: Option<PathBuf>,
    /// Let clients of other machines in without a password
    #[arg(long, num_args = 0, default_missing_value = "true")]
    pub unprotected: Option<bool>,
    /// Certificate in PEM: TLS at all addresses
    #[arg(long, value_name = "FILE")]
    pub tls_cert: Option<PathBuf>,
    /// Its key, in PEM
    #[arg(long, value_name = "FILE")]
    pub tls_key: Option<PathBuf>,
    /// Where a status page (/) and metrics for Prometheus (/metrics) are served, to whoever can connect
    #[arg(long, value_name = "ADDRESS")]
    pub metrics: Option<String>,
    /// Folder of the backups that SAVE and BGSAVE make
    #[arg(long, value_name = "FOLDER")]
    pub backups: Option<PathBuf>,
    /// Threads that serve clients [default: one for each processor]
    #[arg(long, value_name = "NUMBER")]
    pub threads: Option<usize>,
    /// Databases that SELECT knows [default: 16]
    #[arg(long, value_name = "NUMBER")]
    pub databases: Option<usize>,
    /// Most connections [default: 10000]
    #[arg(long, value_name = "NUMBER")]
    pub clients_max: Option<usize>,
    /// Close connections that send nothing for so many seconds [default: 0, never]
    #[arg(long, value_name = "SECONDS")]
    pub idle_s: Option<u64>,
    /// Most arguments of a request [default: 1048576]
    #[arg(long, value_name = "NUMBER")]
    pub args_max: Option<usize>,
    /// Longest argument [default: 512MiB]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    #[serde(default, deserialize_with = "deserialize_size")]
    pub bulk_max: Option<usize>,
    /// Longest request, and longest transaction [default: 1GiB]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    #[serde(default, deserialize_with = "deserialize_size")]
    pub request_max: Option<usize>,
    /// Most bytes that wait for a client which does not read them [default: 256MiB]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    #[serde(default, deserialize_with = "deserialize_size")]
    pub output_max: Option<usize>,
    /// Most bytes in the buffers of all connections together [default: 1GiB]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    #[serde(default, deserialize_with = "deserialize_size")]
    pub buffers_max: Option<usize>,
    /// Allow the command DEBUG
    #[arg(long, num_args = 0, default_missing_value = "true")]
    pub debug: Option<bool>,
}

/// When a write survives a crash, as it is written: `sync`, `buffered`, `interval:100`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct When(pub Persistence);

impl FromStr for When {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let interval_ms = |text: &str| text.parse().ok().filter(|ms: &u64| *ms > 0);
        match text.split_once(':') {
            None if text == "sync" => Ok(Self(Persistence::Sync)),
            None if text == "buffered" => Ok(Self(Persistence::Buffered)),
            Some(("interval", ms)) if interval_ms(ms).is_some() => {
                let ms = interval_ms(ms).unwrap_or(1);
                Ok(Self(Persistence::Interval(Duration::from_millis(ms))))
            }
            _ => Err(format!(
                "`{text}` is none of sync, buffered and interval:MS (from 1 ms on)"
            )),
        }
    }
}

impl<'de> Deserialize<'de> for When {
    fn deserialize<D: Deserializer<'de>>(from: D) -> std::result::Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

impl ServeSettings {
    /// Those of a file.
    ///
    /// # Errors
    /// `Io`; `InvalidArgument` with the line that is wrong.
    pub fn read(file: &Path) -> Result<Self> {
        let text = fs::read_to_string(file)
            .map_err(|error| Error::io(format!("read {}", file.display()), error))?;
        toml::from_str(&text).map_err(|error| {
            let before = error.span().map_or(0, |span| span.start);
            let line = text.bytes().take(before).filter(|byte| *byte == b'\n');
            let (line, what) = (line.count() + 1, error.message());
            Error::invalid(format!("{} line {line}: {what}", file.display()))
        })
    }

    /// These, and for what they do not say those of `file`.
    #[must_use]
    pub fn or(self, file: Self) -> Self {
        Self {
            store: self.store.or(file.store),
            listen: self.listen.or(file.listen),
            unix: self.unix.or(file.unix),
            memory: self.memory.or(file.memory),
            volume_max: self.volume_max.or(file.volume_max),
            durability: self.durability.or(file.durability),
            auth_file: self.auth_file.or(file.auth_file),
            unprotected: self.unprotected.or(file.unprotected),
            tls_cert: self.tls_cert.or(file.tls_cert),
            tls_key: self.tls_key.or(file.tls_key),
            metrics: self.metrics.or(file.metrics),
            backups: self.backups.or(file.backups),
            threads: self.threads.or(file.threads),
            databases: self.databases.or(file.databases),
            clients_max: self.clients_max.or(file.clients_max),
            idle_s: self.idle_s.or(file.idle_s),
            args_max: self.args_max.or(file.args_max),
            bulk_max: self.bulk_max.or(file.bulk_max),
            request_max: self.request_max.or(file.request_max),
            output_max: self.output_max.or(file.output_max),
            buffers_max: self.buffers_max.or(file.buffers_max),
            debug: self.debug.or(file.debug),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<ServeSettings> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("serve.toml");
        fs::write(&file, text).unwrap();
        ServeSettings::read(&file)
    }

    #[test]
    fn flags_win_over_the_file() {
        let file = "listen = [\"10.0.0.2:6379\"]\nmemory = \"8G\"\ndurability = \"interval:50\"\nunprotected = true\n";
        let file = read(file).unwrap();
        let interval = Persistence::Interval(Duration::from_millis(50));
        assert_eq!(
            (file.memory, file.durability),
            (Some(8 << 30), Some(When(interval)))
        );
        let flags = ServeSettings {
            durability: Some("sync".parse().unwrap()),
            unprotected: Some(false),
            ..ServeSettings::default()
        };
        let both = flags.or(file.clone());
        assert_eq!(both.durability, Some(When(Persistence::Sync)));
        assert_eq!((both.unprotected, both.listen), (Some(false), file.listen));
    }

    #[test]
    fn a_wrong_line_is_told_by_its_number() {
        for (text, told) in [
            ("threads = 1\nmemroy = \"8G\"\n", ["line 2", "memroy"]),
            ("\nmemory = \"many\"\n", ["line 2", "many"]),
            ("durability = \"interval:0\"\n", ["line 1", "interval:MS"]),
            ("durability = \"always\"\n", ["line 1", "always"]),
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(
                told.iter().all(|told| error.contains(told)),
                "{text}: {error}"
            );
        }
    }
}
