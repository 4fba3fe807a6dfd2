//! The way to a cluster, with its key.

use std::path::Path;

use kreon_client::{ClientOptions, Cluster};

use super::key;
use crate::failure::Result;

/// Connects to the cluster at `url`, with the key in `key_file`.
pub fn connect(url: &str, key_file: Option<&Path>) -> Result<Cluster> {
    let options = ClientOptions {
        key: key_file.map(key::key).transpose()?,
        ..ClientOptions::default()
    };
    Ok(Cluster::connect_with(url, options)?)
}
