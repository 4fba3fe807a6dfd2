//! Servers that serve together.

use std::path::Path;
use std::time::{Duration, Instant};

use kreon_base::{Error, ErrorKind, Result};

use crate::ask::Mode;
use crate::configuration::{Ports, Settings};
use crate::jars::Jars;
use crate::server::Server;

/// Most servers of an ensemble on one machine.
const SERVERS_MAX: usize = 7;

/// One server, or several of which a majority serves.
pub struct Ensemble {
    /// The servers.
    pub servers: Vec<Server>,
}

impl Ensemble {
    /// Starts `count` servers (1 to 7) with their data below `folder` and waits until all serve, or `limit` is over. Their
    /// clients connect to the ports from `first_port` on, or to any.
    ///
    /// # Errors
    /// `InvalidArgument` for a wrong count; `Busy` if they do not serve within `limit`; `Io`.
    pub fn start(
        jars: &Jars,
        settings: &Settings,
        folder: &Path,
        count: usize,
        first_port: Option<u16>,
        limit: Duration,
    ) -> Result<Self> {
        if !(1..=SERVERS_MAX).contains(&count) {
            let message = format!("{count} servers: 1 to {SERVERS_MAX}");
            return Err(Error::new(ErrorKind::InvalidArgument, message));
        }
        let ports = Ports::choose(count, first_port)?;
        let start = |own: usize| {
            let folder = folder.join((own + 1).to_string());
            Server::start(jars, settings, &folder, own, &ports)
        };
        let servers = (0..count).map(start).collect::<Result<_>>()?;
        let mut ensemble = Self { servers };
        let begun = Instant::now();
        for server in &mut ensemble.servers {
            server.wait_until_serves(limit.saturating_sub(begun.elapsed()))?;
        }
        Ok(ensemble)
    }

    /// The addresses of all servers, as clients want them: with commas between.
    pub fn addresses(&self) -> String {
        let addresses = self
            .servers
            .iter()
            .map(|server| server.address().to_string());
        addresses.collect::<Vec<_>>().join(",")
    }

    /// Which server says that it leads, or is alone.
    pub fn leader(&self) -> Option<usize> {
        let leads =
            |server: &Server| matches!(server.mode(), Some(Mode::Leader | Mode::Standalone));
        self.servers.iter().position(leads)
    }
}
