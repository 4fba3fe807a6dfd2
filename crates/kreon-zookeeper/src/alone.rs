//! One server whose process is somebody else's.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use kreon_base::Result;

use crate::configuration::{Ports, Settings};
use crate::jars::Jars;
use crate::server;

/// What starts a server that serves alone at `port` of the loopback address, with its data in `folder`, and where it will
/// serve. Its files are written; it adds what it says to `server.log` there. Whoever starts it also ends it.
///
/// # Errors
/// `Io`.
pub fn prepare(
    jars: &Jars,
    settings: &Settings,
    folder: &Path,
    port: u16,
) -> Result<(Command, SocketAddr)> {
    // Those for followers are for ensembles only.
    let ports = Ports {
        client: port,
        peers: [0; 2],
    };
    server::write(settings, folder, 0, &[ports])?;
    let command = server::command(jars, settings, folder, 0)?;
    Ok((command, ports.client_address(settings.host(0))))
}
