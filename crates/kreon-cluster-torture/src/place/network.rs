//! Network namespaces on a bridge, and cuts between them.
//!
//! A cut is an entry for a neighbour that nobody has: packets to that address go to nobody, without a word, at once also
//! on connections that exist. It needs no packet filter, and cuts one direction only.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

use parking_lot::Mutex;

use super::shell::{run, try_to};

/// No interface has it.
const NOBODY: &str = "02:00:00:00:00:fe";

/// Who has a namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum End {
    /// A server, from 1 on.
    Server(u32),
    /// A ZooKeeper, from 1 on.
    ZooKeeper(u32),
}

/// The bridge; its namespaces end with it.
pub struct Network {
    name: String,
    subnet: u8,
    ends: Vec<End>,
    cuts: Mutex<BTreeSet<(End, End)>>,
}

impl Network {
    /// Makes a namespace for each end. The caller is on the bridge, too.
    ///
    /// # Errors
    /// What the system says.
    pub fn make(ends: &[End]) -> Result<Self, String> {
        let number = std::process::id();
        let network = Self {
            name: format!("kreon{}", number % 100_000),
            subnet: (number % 250) as u8,
            ends: ends.to_vec(),
            cuts: Mutex::default(),
        };
        let own = format!("{}/24", network.address_of(254));
        run(&["ip", "link", "add", &network.name, "type", "bridge"])?;
        run(&["ip", "addr", "add", &own, "dev", &network.name])?;
        run(&["ip", "link", "set", &network.name, "up"])?;
        for end in ends {
            network.add(*end)?;
        }
        Ok(network)
    }

    fn add(&self, end: End) -> Result<(), String> {
        let (space, outer) = (self.namespace(end), self.outer(end));
        run(&["ip", "netns", "add", &space])?;
        run(&[
            "ip", "link", "add", &outer, "type", "veth", "peer", "name", "eth0", "netns", &space,
        ])?;
        run(&["ip", "link", "set", &outer, "master", &self.name, "up"])?;
        let address = format!("{}/24", self.address(end));
        for words in [
            &["addr", "add", &address, "dev", "eth0"][..],
            &["link", "set", "eth0", "up"],
            &["link", "set", "lo", "up"],
        ] {
            run(&[&["ip", "-n", &space], words].concat())?;
        }
        Ok(())
    }

    /// Where an end is.
    pub fn address(&self, end: End) -> Ipv4Addr {
        match end {
            End::Server(number) => self.address_of(number as u8),
            End::ZooKeeper(number) => self.address_of(100 + number as u8),
        }
    }

    fn address_of(&self, host: u8) -> Ipv4Addr {
        Ipv4Addr::new(10, 213, self.subnet, host)
    }

    fn namespace(&self, end: End) -> String {
        format!("{}-{}", self.name, short(end))
    }

    fn outer(&self, end: End) -> String {
        // Names of interfaces have 15 bytes.
        format!("{}{}", self.name, short(end))
    }

    /// What runs a program at this end.
    pub fn launcher(&self, end: End) -> Vec<String> {
        let space = self.namespace(end);
        let words = ["ip", "netns", "exec", &space];
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    /// Nothing that `from` sends reaches `to` any more.
    ///
    /// # Errors
    /// What the system says.
    pub fn cut(&self, from: End, to: End) -> Result<(), String> {
        let (space, address) = (self.namespace(from), self.address(to).to_string());
        run(&[
            "ip",
            "-n",
            &space,
            "neigh",
            "replace",
            &address,
            "lladdr",
            NOBODY,
            "dev",
            "eth0",
            "nud",
            "permanent",
        ])?;
        self.cuts.lock().insert((from, to));
        Ok(())
    }

    /// Nothing is cut any more.
    ///
    /// # Errors
    /// What the system says.
    pub fn heal(&self) -> Result<(), String> {
        let mut cuts = self.cuts.lock();
        for (from, to) in cuts.iter() {
            let (space, address) = (self.namespace(*from), self.address(*to).to_string());
            run(&["ip", "-n", &space, "neigh", "del", &address, "dev", "eth0"])?;
        }
        cuts.clear();
        Ok(())
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        for end in &self.ends {
            try_to(&["ip", "netns", "del", &self.namespace(*end)]);
            try_to(&["ip", "link", "del", &self.outer(*end)]);
        }
        try_to(&["ip", "link", "del", &self.name]);
    }
}

fn short(end: End) -> String {
    match end {
        End::Server(number) => format!("s{number}"),
        End::ZooKeeper(number) => format!("z{number}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::place::tools::Tools;

    /// Whether a packet from `from` comes back from `to`.
    fn reaches(network: &Network, from: End, to: End) -> bool {
        let address = network.address(to).to_string();
        let listener = format!(
            "import socket\ns=socket.socket(socket.AF_INET,socket.SOCK_DGRAM)\ns.bind(('{address}',7))\n\
             s.settimeout(1)\nprint(s.recv(9).decode())"
        );
        let mut command = std::process::Command::new("ip");
        command.args(&network.launcher(to)[1..]);
        command.args(["python3", "-c", &listener]);
        command.stdout(std::process::Stdio::piped());
        command.stderr(std::process::Stdio::null());
        let child = command.spawn().unwrap();
        let speaker = format!(
            "import socket,time\ns=socket.socket(socket.AF_INET,socket.SOCK_DGRAM)\nfor i in range(6):\n \
             time.sleep(.1)\n s.sendto(b'hello',('{address}',7))"
        );
        let launcher = network.launcher(from);
        let mut words: Vec<&str> = launcher.iter().map(String::as_str).collect();
        words.extend(["python3", "-c", &speaker]);
        let sent = run(&words);
        let heard = child.wait_with_output().unwrap();
        sent.is_ok() && heard.stdout.starts_with(b"hello")
    }

    #[test]
    fn a_cut_is_one_way_until_it_is_healed() {
        let (tools, lacks) = Tools::find();
        if !tools.has_network || run(&["python3", "-V"]).is_err() {
            eprintln!("SKIPPED: {lacks:?}");
            return;
        }
        let (a, b) = (End::Server(1), End::ZooKeeper(2));
        let network = Network::make(&[a, b]).unwrap();
        assert!(reaches(&network, a, b) && reaches(&network, b, a));
        network.cut(a, b).unwrap();
        assert!(!reaches(&network, a, b));
        assert!(reaches(&network, b, a));
        network.heal().unwrap();
        assert!(reaches(&network, a, b));
    }
}
