//! What a cluster on one machine consists of: kept in its folder, so that the next `up` goes on with it.

use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;

use kreon::{Error, Result};
use serde::{Deserialize, Serialize};

use crate::failure::Failure;

/// Where ZooKeeper and the first server listen if nothing is said.
pub const PORTS: [u16; 2] = [2181, 7401];

/// Most servers on one machine.
pub const SERVERS_MAX: usize = 16;

/// The plan, as it stands in the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// Name of the cluster.
    pub name: String,
    /// Groups that it was made with.
    pub groups: u32,
    /// Memory of each server, in bytes.
    pub memory_bytes: usize,
    /// Port of ZooKeeper on the loopback address.
    pub zookeeper_port: u16,
    /// Ports of the servers there; the first is that of server 1.
    pub server_ports: Vec<u16>,
}

/// What the command line says of it; none: as it is.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    pub name: Option<String>,
    pub servers: Option<usize>,
    pub groups: Option<u32>,
    pub memory_bytes: Option<usize>,
    /// 0: any free port.
    pub zookeeper_port: Option<u16>,
    /// Of the first server; the others have the next ones. 0: any free ports.
    pub port: Option<u16>,
}

/// Memory of each server if nothing is said: 32 MiB for each of 8 primaries.
const MEMORY_BYTES: usize = 256 << 20;

impl Plan {
    /// The plan that is `known` with what is wanted beyond it, or a new one. Where processes of it run, they stay where
    /// they are.
    ///
    /// # Errors
    /// Wrong use if it wants what cannot be changed; `Io`.
    pub fn of(known: Option<Self>, wanted: &Wanted, runs: bool) -> Result<Self, Failure> {
        let servers = wanted.servers;
        if servers.is_some_and(|servers| !(1..=SERVERS_MAX).contains(&servers)) {
            return Err(Failure::usage(format!("--servers: 1 to {SERVERS_MAX}")));
        }
        let Some(mut plan) = known else {
            return Self::new(wanted).map_err(Failure::from);
        };
        let fixed = [
            (
                "--name",
                wanted.name.as_ref().is_some_and(|name| *name != plan.name),
            ),
            (
                "--groups",
                wanted.groups.is_some_and(|groups| groups != plan.groups),
            ),
            (
                "--servers",
                servers.is_some_and(|servers| servers < plan.server_ports.len()),
            ),
        ];
        if let Some((option, _)) = fixed.iter().find(|(_, differs)| *differs) {
            return Err(Failure::usage(format!(
                "{option}: the cluster in this folder is another one, and stays as it was made"
            )));
        }
        plan.memory_bytes = wanted.memory_bytes.unwrap_or(plan.memory_bytes);
        let count = servers.unwrap_or(plan.server_ports.len());
        let ports = (plan.zookeeper_port, plan.server_ports.clone());
        // Any: what they have, while they run.
        if let Some(port) = wanted.zookeeper_port.filter(|port| *port != 0 || !runs) {
            plan.zookeeper_port = chosen(port, 1)?[0];
        }
        if let Some(port) = wanted.port.filter(|port| *port != 0 || !runs) {
            plan.server_ports = chosen(port, count)?;
        }
        let is_same = plan.zookeeper_port == ports.0 && plan.server_ports.starts_with(&ports.1);
        if runs && !is_same {
            return Err(Failure::usage("the cluster runs at other ports")
                .with_advice("end it by `kreon cluster down` first"));
        }
        while plan.server_ports.len() < count {
            let next = plan
                .server_ports
                .iter()
                .max()
                .map_or(0, |last| last.saturating_add(1));
            plan.server_ports.push(next);
        }
        Ok(plan)
    }

    fn new(wanted: &Wanted) -> Result<Self> {
        let [zookeeper, first] = PORTS;
        let servers = wanted.servers.unwrap_or(3);
        Ok(Self {
            name: wanted.name.clone().unwrap_or_else(|| "local".to_owned()),
            groups: wanted.groups.unwrap_or(u32::try_from(servers).unwrap_or(1)),
            memory_bytes: wanted.memory_bytes.unwrap_or(MEMORY_BYTES),
            zookeeper_port: chosen(wanted.zookeeper_port.unwrap_or(zookeeper), 1)?[0],
            server_ports: chosen(wanted.port.unwrap_or(first), servers)?,
        })
    }

    /// The plan in `file`; none if there is no such file.
    ///
    /// # Errors
    /// `Io`; `Corruption` if it is none.
    pub fn read(file: &Path) -> Result<Option<Self>> {
        let text = match fs::read_to_string(file) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Error::io(format!("read {}", file.display()), error)),
        };
        let plan = toml::from_str(&text).map_err(|error| {
            let what = error.message().to_owned();
            Error::corruption(format!("{}: {what}", file.display()))
        })?;
        Ok(Some(plan))
    }

    /// Writes it to `file`.
    ///
    /// # Errors
    /// `Io`.
    pub fn write(&self, file: &Path) -> Result<()> {
        let io = |error| Error::io(format!("write {}", file.display()), error);
        let text = toml::to_string(self).map_err(|error| io(std::io::Error::other(error)))?;
        let fresh = file.with_extension("new");
        fs::write(&fresh, text)
            .and_then(|()| fs::rename(&fresh, file))
            .map_err(io)
    }

    /// Where its coordinator is, and its name.
    pub fn url(&self) -> String {
        format!("zk://127.0.0.1:{}/{}", self.zookeeper_port, self.name)
    }

    /// Where the server `number` listens, from 1 on.
    pub fn address(&self, number: usize) -> String {
        let port = number
            .checked_sub(1)
            .and_then(|at| self.server_ports.get(at));
        format!("127.0.0.1:{}", port.copied().unwrap_or_default())
    }
}

/// `count` ports from `first` on, or any that are free now if that is 0.
fn chosen(first: u16, count: usize) -> Result<Vec<u16>> {
    if first == 0 {
        return free_ports(count);
    }
    let next = |at: usize| u16::try_from(at).ok().and_then(|at| first.checked_add(at));
    let ports: Option<Vec<_>> = (0..count).map(next).collect();
    ports.ok_or_else(|| Error::invalid(format!("there are no {count} ports from {first} on")))
}

fn free_ports(count: usize) -> Result<Vec<u16>> {
    let io = |error| Error::io("find a free port", error);
    let listeners: std::io::Result<Vec<_>> = (0..count)
        .map(|_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)))
        .collect();
    let listeners = listeners.map_err(io)?;
    let port = |listener: &TcpListener| Ok(listener.local_addr().map_err(io)?.port());
    listeners.iter().map(port).collect()
}

/// Whether somebody can listen at this port of the loopback address.
pub fn is_free(port: u16) -> bool {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_plan_goes_on_with_the_first_and_takes_only_what_can_be_changed() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("cluster.toml");
        let first = Plan::of(Plan::read(&file).unwrap(), &Wanted::default(), false).unwrap();
        assert_eq!(first.url(), "zk://127.0.0.1:2181/local");
        assert_eq!(first.address(3), "127.0.0.1:7403");
        first.write(&file).unwrap();
        assert_eq!(Plan::read(&file).unwrap(), Some(first.clone()));
        let of = |wanted: &Wanted, runs| Plan::of(Some(first.clone()), wanted, runs);
        assert_eq!(of(&Wanted::default(), true).unwrap(), first);
        let wanted = Wanted {
            servers: Some(4),
            memory_bytes: Some(1 << 30),
            ..Wanted::default()
        };
        let grown = of(&wanted, true).unwrap();
        assert_eq!(grown.server_ports, [7401, 7402, 7403, 7404]);
        assert_eq!(grown.memory_bytes, 1 << 30);
        for wanted in [
            Wanted {
                servers: Some(2),
                ..Wanted::default()
            },
            Wanted {
                servers: Some(0),
                ..Wanted::default()
            },
            Wanted {
                groups: Some(7),
                ..Wanted::default()
            },
            Wanted {
                name: Some("x".into()),
                ..Wanted::default()
            },
        ] {
            let refused = of(&wanted, false).unwrap_err();
            assert_eq!(refused.exit_code(), 2, "{refused}");
        }
        fs::write(&file, "name = 1").unwrap();
        assert_eq!(
            Plan::read(&file).unwrap_err().kind(),
            kreon::ErrorKind::Corruption
        );
    }

    #[test]
    fn processes_that_run_stay_at_their_ports() {
        let known = Plan::of(None, &Wanted::default(), false).unwrap();
        let wanted = |port| Wanted {
            zookeeper_port: Some(port),
            port: Some(port),
            ..Wanted::default()
        };
        let of = |port, runs| Plan::of(Some(known.clone()), &wanted(port), runs);
        assert_eq!(of(0, true).unwrap(), known);
        assert_ne!(of(0, false).unwrap(), known);
        assert_eq!(of(9000, true).unwrap_err().exit_code(), 2);
        assert_eq!(of(9000, false).unwrap().server_ports, [9000, 9001, 9002]);
    }

    #[test]
    fn ports_are_named_or_free_and_never_above_the_last() {
        assert_eq!(chosen(7401, 2).unwrap(), [7401, 7402]);
        assert!(chosen(65535, 2).is_err());
        let free = chosen(0, 2).unwrap();
        assert!(free[0] != free[1] && free.iter().all(|port| is_free(*port)));
        let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        assert!(!is_free(taken.local_addr().unwrap().port()));
    }
}
