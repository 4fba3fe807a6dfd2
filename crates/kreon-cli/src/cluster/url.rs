//! Where a cluster is: `zk://HOST[:PORT],HOST/NAME`.

use kreon::{Error, Result};

/// The port of ZooKeeper if none is named.
const PORT: u16 = 2181;

/// The place of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterUrl {
    /// ZooKeepers, `host:port` with commas between.
    pub coordinators: String,
    /// Name of the cluster.
    pub name: String,
}

impl ClusterUrl {
    /// What `text` means.
    ///
    /// # Errors
    /// `InvalidArgument`.
    pub fn parse(text: &str) -> Result<Self> {
        let wrong = |why: &str| {
            Error::invalid(format!(
                "`{text}` {why}: zk://HOST[:PORT],HOST[:PORT]/NAME names a cluster"
            ))
        };
        let rest = text
            .strip_prefix("zk://")
            .ok_or_else(|| wrong("does not begin with zk://"))?;
        let (hosts, name) = rest
            .split_once('/')
            .ok_or_else(|| wrong("has no name of a cluster"))?;
        if name.is_empty() || name.contains('/') {
            return Err(wrong("has no name of a cluster"));
        }
        let mut coordinators = Vec::new();
        for host in hosts.split(',') {
            let (name, port) = match host.rsplit_once(':') {
                // An IPv6 address in its brackets has colons of its own.
                Some((name, port)) if !port.ends_with(']') => (name, Some(port)),
                _ => (host, None),
            };
            let port = port.map_or(Ok(PORT), str::parse);
            let is_name = !name.is_empty() && !name.contains(char::is_whitespace);
            match port {
                Ok(port) if port != 0 && is_name => coordinators.push(format!("{name}:{port}")),
                _ => return Err(wrong(&format!("has no host and port in `{host}`"))),
            }
        }
        Ok(Self {
            coordinators: coordinators.join(","),
            name: name.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_have_ports_or_the_usual_one() {
        for (text, coordinators) in [
            ("zk://h1/prod", "h1:2181"),
            ("zk://h1,h2:99,10.0.0.3/prod", "h1:2181,h2:99,10.0.0.3:2181"),
            ("zk://[::1]:99,[::1]/prod", "[::1]:99,[::1]:2181"),
        ] {
            let url = ClusterUrl::parse(text).unwrap();
            assert_eq!(url.coordinators, coordinators);
            assert_eq!(url.name, "prod");
        }
    }

    #[test]
    fn what_is_no_place_is_told() {
        for (text, told) in [
            ("", "zk://"),
            ("http://h1/prod", "zk://"),
            ("zk://h1", "name"),
            ("zk://h1/", "name"),
            ("zk://h1/a/b", "name"),
            ("zk:///prod", "host"),
            ("zk://h1,,h2/prod", "host"),
            ("zk://h1:x/prod", "`h1:x`"),
            ("zk://h1:0/prod", "host"),
            ("zk://h1:99999/prod", "host"),
        ] {
            let error = ClusterUrl::parse(text).unwrap_err().to_string();
            assert!(error.contains(told), "{text}: {error}");
        }
    }
}
