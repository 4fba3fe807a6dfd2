//! Settings of a server: from flags and from a file. Flags win.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use kreon::{Error, Result};
use serde::Deserialize;

use crate::size::{deserialize_size, parse_size};

/// What may stand in the file, and before it on the command line.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ServerSettings {
    // These two are options of all commands of clusters.
    #[arg(skip)]
    pub cluster: Option<String>,
    #[arg(skip)]
    pub key_file: Option<PathBuf>,
    /// Number of the server, from 1 on; later starts take it from the data folder
    #[arg(long, value_name = "NUMBER")]
    pub id: Option<u32>,
    /// Folder of its data
    #[arg(long, value_name = "FOLDER")]
    pub data: Option<PathBuf>,
    /// Where it listens for clients and other servers: an IP address and a port [default: 127.0.0.1:7400]
    #[arg(long, value_name = "ADDRESS")]
    pub listen: Option<String>,
    /// Where others reach it, if that is another address
    #[arg(long, value_name = "ADDRESS")]
    pub advertise: Option<String>,
    /// What fails together with it: a rack, a power line [default: server-NUMBER]
    #[arg(long, value_name = "NAME")]
    pub domain: Option<String>,
    /// Memory of its stores: each has its part of --primaries-max [default: 1GiB]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    #[serde(default, deserialize_with = "deserialize_size")]
    pub memory: Option<usize>,
    /// Most groups whose primary it is [default: 8]
    #[arg(long, value_name = "GROUPS")]
    pub primaries_max: Option<u32>,
    /// Ask ZooKeeper for sessions of so many milliseconds: who is silent for longer is taken for dead [default: 1000]
    #[arg(long, value_name = "MS")]
    pub session_ms: Option<u32>,
    /// Where a status page (/) and metrics for Prometheus (/metrics) are served, to whoever can connect
    #[arg(long, value_name = "ADDRESS")]
    pub status_listen: Option<String>,
}

impl ServerSettings {
    /// Those of a file.
    ///
    /// # Errors
    /// `Io`; `InvalidArgument` with the line that is wrong.
    pub fn read(file: &Path) -> Result<Self> {
        let text = fs::read_to_string(file)
            .map_err(|error| Error::io(format!("read {}", file.display()), error))?;
        toml::from_str(&text).map_err(|error| {
            let before = error.span().map_or(0, |span| span.start);
            let line = text
                .as_bytes()
                .iter()
                .take(before)
                .filter(|byte| **byte == b'\n');
            let (line, what) = (line.count() + 1, error.message());
            Error::invalid(format!("{} line {line}: {what}", file.display()))
        })
    }

    /// These, and for what they do not say those of `file`.
    #[must_use]
    pub fn or(self, file: Self) -> Self {
        Self {
            cluster: self.cluster.or(file.cluster),
            key_file: self.key_file.or(file.key_file),
            id: self.id.or(file.id),
            data: self.data.or(file.data),
            listen: self.listen.or(file.listen),
            advertise: self.advertise.or(file.advertise),
            domain: self.domain.or(file.domain),
            memory: self.memory.or(file.memory),
            primaries_max: self.primaries_max.or(file.primaries_max),
            session_ms: self.session_ms.or(file.session_ms),
            status_listen: self.status_listen.or(file.status_listen),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<ServerSettings> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("server.toml");
        fs::write(&file, text).unwrap();
        ServerSettings::read(&file)
    }

    #[test]
    fn flags_win_over_the_file() {
        let file = read("id = 2\nmemory = \"8G\"\nlisten = \"10.0.0.2:7400\"\n").unwrap();
        assert_eq!(file.memory, Some(8 << 30));
        let flags = ServerSettings {
            id: Some(3),
            ..ServerSettings::default()
        };
        let both = flags.or(file.clone());
        assert_eq!(both.id, Some(3));
        assert_eq!(both.listen, file.listen);
        assert_eq!(read("memory = 1048576").unwrap().memory, Some(1 << 20));
    }

    #[test]
    fn a_wrong_line_is_told_by_its_number() {
        for (text, told) in [
            ("id = 1\nmemroy = \"8G\"\n", ["line 2", "memroy"]),
            ("id = 1\n\nmemory = \"many\"\n", ["line 3", "many"]),
            ("id = \"x\"\n", ["line 1", "string"]),
            ("id = 1\nid = 2\n", ["line 2", "id"]),
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(
                told.iter().all(|told| error.contains(told)),
                "{text}: {error}"
            );
        }
    }
}
