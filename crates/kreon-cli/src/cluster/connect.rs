//! The way to a cluster, with its key.

use std::path::Path;

use kreon::{Error, ErrorKind};
use kreon_client::{ClientOptions, Cluster, ClusterUrl};
use kreon_coord::ZooKeeper;

use super::key;
use crate::failure::{Code, Failure, Result};

/// Connects to the cluster at `url`, with the key in `key_file`.
pub fn connect(url: &str, key_file: Option<&Path>) -> Result<Cluster> {
    let options = ClientOptions {
        key: key_file.map(key::key).transpose()?,
        ..ClientOptions::default()
    };
    Ok(Cluster::connect_with(url, options)?)
}

/// Begins a session with the coordinator of a cluster, for `session_ms` milliseconds if that is granted.
pub fn session(url: &ClusterUrl, session_ms: u32) -> Result<ZooKeeper> {
    ZooKeeper::connect(&url.coordinator, session_ms).map_err(unreached)
}

/// What to do if ZooKeeper is not there.
pub fn unreached(error: Error) -> Failure {
    match error.kind() {
        ErrorKind::Io => Failure::new(
            Code::Unavailable,
            error.to_string(),
            "check the hosts and ports of --cluster, and that ZooKeeper runs there",
        ),
        _ => error.into(),
    }
}
