//! Which cluster, and how it is used.

use kreon_fabric::Key;

use crate::error::{Error, ErrorKind, Result};
use crate::moment::Timing;

/// Port of a ZooKeeper that is named without one.
const ZOOKEEPER_PORT: u16 = 2181;

/// How a cluster is used.
#[derive(Clone, Debug)]
pub struct ClientOptions {
    /// The key of the cluster. Without one, only servers of this machine are talked to.
    pub key: Option<Key>,
    /// How long calls wait for what.
    pub timing: Timing,
    /// Bytes of calls under way, all told: whoever makes one more waits. One call alone may have more.
    pub memory_bytes: usize,
    /// Milliseconds without contact after which the coordinator forgets this client, as asked for.
    pub session_ms: u32,
    /// Bytes of keys and values in one page of a scan; a scan holds two pages.
    pub page_bytes: u32,
}

impl Default for ClientOptions {
    /// No key, 64 MiB, sessions of 10 s, pages of 256 KiB.
    fn default() -> Self {
        Self {
            key: None,
            timing: Timing::default(),
            memory_bytes: 64 << 20,
            session_ms: 10_000,
            page_bytes: 256 << 10,
        }
    }
}

/// `zk://host[:port],host[:port].../name`, taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterUrl {
    /// The servers of the coordinator, `host:port` with commas between.
    pub coordinator: String,
    /// The name of the cluster.
    pub name: String,
}

impl ClusterUrl {
    /// Takes a URL apart.
    ///
    /// # Errors
    /// `InvalidArgument` if it is none.
    pub fn parse(url: &str) -> Result<Self> {
        let refused = || {
            let text = format!("{url:?}: not zk://host[:port],host[:port]/name");
            Error::new(ErrorKind::InvalidArgument, text)
        };
        let rest = url.strip_prefix("zk://").ok_or_else(refused)?;
        let (hosts, name) = rest.split_once('/').ok_or_else(refused)?;
        let is_name = !name.is_empty() && name.len() <= 64 && !name.contains(['/', '\0']);
        if !is_name || name.contains(char::is_control) {
            return Err(refused());
        }
        let mut servers = Vec::new();
        for host in hosts.split(',') {
            let (name, port) = match host.rsplit_once(':') {
                Some((name, port)) if !name.ends_with(':') && !port.ends_with(']') => {
                    (name, port.parse::<u16>().map_err(|_| refused())?)
                }
                _ => (host, ZOOKEEPER_PORT),
            };
            if name.is_empty() {
                return Err(refused());
            }
            servers.push(format!("{name}:{port}"));
        }
        Ok(Self {
            coordinator: servers.join(","),
            name: name.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_names_servers_and_a_cluster() {
        let url = ClusterUrl::parse("zk://h1,h2:2182,[::1]:7,[::2]/prod").unwrap();
        assert_eq!(url.coordinator, "h1:2181,h2:2182,[::1]:7,[::2]:2181");
        assert_eq!(url.name, "prod");
    }

    #[test]
    fn what_is_no_url_is_refused() {
        for url in [
            "",
            "zk://",
            "zk://h",
            "zk://h/",
            "zk:///c",
            "h/c",
            "zk://h:x/c",
            "zk://h/a/b",
            "zk://h,/c",
        ] {
            let error = ClusterUrl::parse(url).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{url}");
        }
    }
}
