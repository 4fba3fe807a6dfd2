//! All processes of a cluster.

use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::time::Duration;

use kreon_zookeeper::{Ensemble, Jars, Place};

use super::settings::{DISK_BYTES, Settings};
use crate::course::logs::path_of;
use crate::place::disk::Disk;
use crate::place::network::{End, Network};
use crate::place::process::Process;

/// Where servers with a network of their own listen.
const PORT: u16 = 7400;

/// Units of the times of the ZooKeepers: sessions have at least two.
const TICK_MS: u32 = 200;

/// How long the ZooKeepers may take to start.
const START_MAX: Duration = Duration::from_secs(60);

/// A server.
pub struct Seat {
    /// Its number, from 1 on.
    pub number: u32,
    /// Its process.
    pub process: Process,
    /// Its disk, if it has one of its own.
    pub disk: Option<Disk>,
    /// Its address.
    pub address: String,
    /// How fast its clock goes, in percent.
    pub clock_percent: u32,
}

/// The processes. They end with this; their folders stay.
pub struct Cluster {
    /// The servers, ascending.
    pub seats: Vec<Seat>,
    /// The ZooKeepers.
    pub ensemble: Ensemble,
    /// Their network, if they have one of their own.
    pub network: Option<Network>,
    /// The file with the key.
    pub key: PathBuf,
}

impl Cluster {
    /// Starts the ZooKeepers and prepares the servers.
    ///
    /// # Errors
    /// What the system says.
    pub fn prepare(settings: &Settings, jars: &Jars) -> Result<Self, String> {
        let said = |error: std::io::Error| format!("{}: {error}", settings.folder.display());
        fs::create_dir_all(&settings.folder).map_err(said)?;
        let network = match settings.tools.has_network {
            true => Some(Network::make(&ends(settings))?),
            false => None,
        };
        let zookeeper = kreon_zookeeper::Settings {
            tick_ms: TICK_MS,
            is_synced: false,
            places: places(network.as_ref(), settings.zookeepers),
            ..kreon_zookeeper::Settings::default()
        };
        let count = settings.zookeepers as usize;
        let folder = settings.folder.join("zookeeper");
        let ensemble = Ensemble::start(jars, &zookeeper, &folder, count, None, START_MAX)
            .map_err(|error| error.to_string())?;
        let key = settings.folder.join("key");
        fs::write(&key, b"a key of torture that nobody else has\n").map_err(said)?;
        let mut cluster = Self {
            seats: Vec::new(),
            ensemble,
            network,
            key,
        };
        for number in 1..=settings.servers {
            let seat = cluster.seat(settings, number)?;
            cluster.seats.push(seat);
        }
        Ok(cluster)
    }

    fn seat(&self, settings: &Settings, number: u32) -> Result<Seat, String> {
        let folder = settings.folder.join(format!("server-{number}"));
        let disk = match settings.tools.has_disks {
            true => Some(Disk::make(
                &folder,
                DISK_BYTES,
                settings.tools.has_throttle,
            )?),
            false => None,
        };
        let end = End::Server(number);
        let (address, mut words) = match &self.network {
            Some(network) => (
                format!("{}:{PORT}", network.address(end)),
                network.launcher(end),
            ),
            None => (free_address()?, Vec::new()),
        };
        words.extend(self.program(settings, number, &folder, &address)?);
        let log = path_of(&settings.folder, number);
        Ok(Seat {
            number,
            process: Process::new(words, &log),
            disk,
            address,
            clock_percent: 100,
        })
    }

    /// This program serves, too.
    fn program(
        &self,
        settings: &Settings,
        number: u32,
        folder: &Path,
        address: &str,
    ) -> Result<Vec<String>, String> {
        let own = std::env::current_exe().map_err(|error| error.to_string())?;
        let mut words = vec![own.display().to_string(), "serve".into()];
        let mut flag = |name: &str, value: String| words.extend([format!("--{name}"), value]);
        flag("cluster", Settings::CLUSTER.into());
        flag("zookeepers", self.ensemble.addresses());
        flag("session-ms", settings.session.as_millis().to_string());
        flag("server", number.to_string());
        // Not the root of the file system: what is in it is not the server's.
        flag("data", folder.join("data").display().to_string());
        flag("listen", address.to_owned());
        flag("key", self.key.display().to_string());
        flag("memory-mib", settings.memory_mib.to_string());
        flag("begun-us", settings.clock.begun_us().to_string());
        if let Some(bug) = &settings.bug {
            flag("bug", bug.clone());
        }
        Ok(words)
    }

    /// Starts the servers that do not run.
    ///
    /// # Errors
    /// What the system says.
    pub fn start_all(&mut self) -> Result<(), String> {
        self.seats.iter_mut().try_for_each(Seat::start)
    }

    /// The seat of a server.
    ///
    /// # Errors
    /// There is none.
    pub fn seat_mut(&mut self, number: u32) -> Result<&mut Seat, String> {
        let mut seats = self.seats.iter_mut();
        let found = seats.find(|seat| seat.number == number);
        found.ok_or_else(|| format!("no server {number}"))
    }

    /// A server that ended although nobody killed it, with its last words.
    pub fn fallen(&mut self) -> Option<String> {
        self.seats.iter_mut().find_map(|seat| {
            let (status, said) = seat.process.ended()?;
            Some(format!(
                "server {} ended by itself with {status}; its last words:\n{said}",
                seat.number
            ))
        })
    }
}

impl Seat {
    /// Starts it if it does not run.
    ///
    /// # Errors
    /// What the system says.
    pub fn start(&mut self) -> Result<(), String> {
        if self.process.is_started() {
            return Ok(());
        }
        let clock = ["--clock-percent".to_owned(), self.clock_percent.to_string()];
        let process = self.process.start(&clock)?;
        match &self.disk {
            Some(disk) => disk.adopt(process),
            None => Ok(()),
        }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // Before their disks and their network.
        for seat in &mut self.seats {
            if let Some(disk) = &seat.disk {
                let _ = disk.thaw();
            }
            let _ = seat.process.kill();
        }
    }
}

fn ends(settings: &Settings) -> Vec<End> {
    let servers = (1..=settings.servers).map(End::Server);
    let zookeepers = (1..=settings.zookeepers).map(End::ZooKeeper);
    servers.chain(zookeepers).collect()
}

fn places(network: Option<&Network>, zookeepers: u32) -> Vec<Place> {
    let Some(network) = network else {
        return Vec::new();
    };
    let place = |number| Place {
        host: network.address(End::ZooKeeper(number)),
        launcher: network.launcher(End::ZooKeeper(number)),
    };
    (1..=zookeepers).map(place).collect()
}

/// A port of the loopback address that is free now.
fn free_address() -> Result<String, String> {
    let said = |error: std::io::Error| error.to_string();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(said)?;
    Ok(listener.local_addr().map_err(said)?.to_string())
}
