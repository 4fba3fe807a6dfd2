//! Clients of the cluster, and what their library says.

use std::time::Duration;

use kreon_client::{
    ClientOptions, Cluster, Durability, Error, ErrorKind, Region, Timing, WriteBatch,
};
use kreon_fabric::Key;

use crate::clients::face::{Change, Moment, Pairs, Said, Store};
use crate::clients::keys::TABLE;

/// Clients with such a limit never send a read again.
pub const PATIENT: Duration = Duration::from_secs(10);

/// How clients come in.
#[derive(Clone)]
pub struct Entrance {
    url: String,
    key: Key,
}

impl Entrance {
    /// Of a cluster with these ZooKeepers.
    ///
    /// # Errors
    /// The key cannot be read.
    pub fn new(zookeepers: &str, cluster: &str, key: &std::path::Path) -> Result<Self, String> {
        let bytes = std::fs::read(key).map_err(|error| error.to_string())?;
        Ok(Self {
            url: format!("zk://{zookeepers}/{cluster}"),
            key: Key::new(bytes.trim_ascii()).map_err(|error| error.to_string())?,
        })
    }

    fn connect(&self, limit: Duration) -> Result<Cluster, Error> {
        // Calls with the longest limit wait for a frozen server until it answers, if it dares.
        let patience = match limit >= PATIENT {
            true => limit,
            false => Duration::from_secs(1),
        };
        let options = ClientOptions {
            key: Some(self.key.clone()),
            timing: Timing {
                limit_us: limit.as_micros() as u64,
                patience_us: patience.as_micros() as u64,
                ..Timing::default()
            },
            ..ClientOptions::default()
        };
        Cluster::connect_with(&self.url, options)
    }

    /// A client, whose calls end within `limit`.
    ///
    /// # Errors
    /// ZooKeeper cannot be reached, or there is no table.
    pub fn enter(&self, limit: Duration) -> Result<Box<dyn Store>, String> {
        let cluster = self.connect(limit).map_err(|error| error.to_string())?;
        let region = cluster.region(TABLE).map_err(|error| error.to_string())?;
        Ok(Box::new(Inside { cluster, region }))
    }

    /// Makes the table.
    ///
    /// # Errors
    /// It is not there within `patience`.
    pub fn make_table(&self, splits: &[Vec<u8>], patience: Duration) -> Result<(), String> {
        let begun = std::time::Instant::now();
        loop {
            let made = self
                .connect(Duration::from_secs(5))
                .and_then(|cluster| cluster.create_table(TABLE, splits).map(drop));
            match made {
                Ok(()) => return Ok(()),
                Err(error) if begun.elapsed() > patience => {
                    return Err(format!("no table: {error}"));
                }
                Err(_) => std::thread::sleep(Duration::from_millis(100)),
            }
        }
    }
}

struct Inside {
    cluster: Cluster,
    region: Region,
}

fn said(error: &Error) -> Said {
    let text = error.to_string();
    match error.kind() {
        ErrorKind::Unavailable | ErrorKind::Busy | ErrorKind::OutOfSpace => Said::Refused(text),
        ErrorKind::Unknown => Said::Unknown(text),
        ErrorKind::Closed => Said::Closed,
        // A device that fails tells the client of it.
        ErrorKind::Io => Said::Unknown(text),
        _ => Said::Wrong(text),
    }
}

fn all(scan: kreon_client::Scan) -> Result<Pairs, Said> {
    let pair = |pair: Result<_, Error>| {
        let (key, value): (kreon_client::Value, kreon_client::Value) =
            pair.map_err(|error| said(&error))?;
        Ok((key.to_vec(), value.to_vec()))
    };
    scan.map(pair).collect()
}

impl Store for Inside {
    fn get_many(&mut self, keys: &[Vec<u8>]) -> Result<Vec<Option<Vec<u8>>>, Said> {
        let found = match keys {
            [key] => vec![self.region.get(key).map_err(|error| said(&error))?],
            keys => self.region.get_many(keys).map_err(|error| said(&error))?,
        };
        let values = found
            .into_iter()
            .map(|value| value.map(|value| value.to_vec()));
        Ok(values.collect())
    }

    fn write(&mut self, changes: &[Change], is_sync: bool) -> Result<(), Said> {
        let durability = match is_sync {
            true => Durability::Sync,
            false => Durability::Replicated,
        };
        let written = match changes {
            [Change::Put(key, value)] => self.region.put_with(key, value, durability),
            [Change::Delete(key)] => self.region.delete_with(key, durability),
            [Change::DeleteRange(start, end)] => {
                self.region.delete_range_with(start..end, durability)
            }
            changes => {
                let mut batch = WriteBatch::new();
                for change in changes {
                    match change {
                        Change::Put(key, value) => batch.put(&self.region, key, value),
                        Change::Delete(key) => batch.delete(&self.region, key),
                        Change::DeleteRange(start, end) => {
                            batch.delete_range(&self.region, start..end);
                        }
                    }
                }
                self.cluster.write(batch, durability)
            }
        };
        written.map_err(|error| match said(&error) {
            // Nothing has an identity that a refusal could be told from.
            Said::Closed => Said::Unknown(error.to_string()),
            other => other,
        })
    }

    fn scan(&mut self, start: &[u8], end: &[u8], is_reverse: bool) -> Result<Pairs, Said> {
        all(match is_reverse {
            true => self.region.scan_rev(start..end),
            false => self.region.scan(start..end),
        })
    }

    fn snapshot(&mut self, _key: &[u8]) -> Result<Box<dyn Moment + '_>, Said> {
        let snapshot = self.region.snapshot().map_err(|error| said(&error))?;
        Ok(Box::new(Then(snapshot)))
    }
}

struct Then(kreon_client::Snapshot);

impl Moment for Then {
    fn get(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>, Said> {
        let value = self.0.get(key).map_err(|error| said(&error))?;
        Ok(value.map(|value| value.to_vec()))
    }

    fn scan(&mut self, start: &[u8], end: &[u8]) -> Result<Pairs, Said> {
        all(self.0.scan(start..end))
    }
}
