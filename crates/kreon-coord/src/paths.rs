//! Where what stands.

/// The paths of one cluster, below `/kreon/<name>`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Paths {
    root: String,
}

impl Paths {
    /// The paths of the cluster `name`, which has no slash.
    pub fn new(name: &str) -> Self {
        Self {
            root: format!("/kreon/{name}"),
        }
    }

    /// The nodes under which everything else stands, each after the one above it: to be made once.
    pub fn folders(&self) -> Vec<String> {
        let kreon = "/kreon".to_owned();
        let parts = [self.servers(), self.live(), self.master(), self.groups()];
        let mut folders = vec![kreon, self.root.clone()];
        folders.extend(parts);
        folders.push(self.tables());
        folders
    }

    /// Version of the cluster's format.
    pub fn format(&self) -> String {
        format!("{}/format", self.root)
    }

    /// Servers: addresses and failure domains.
    pub fn servers(&self) -> String {
        format!("{}/servers", self.root)
    }

    /// One server.
    pub fn server(&self, server: u32) -> String {
        format!("{}/servers/{server}", self.root)
    }

    /// Starts of servers that have a session: ephemeral nodes.
    pub fn live(&self) -> String {
        format!("{}/live", self.root)
    }

    /// One start. The process is in the name, so that a dead session does not block a fast restart.
    pub fn live_process(&self, server: u32, process: u128) -> String {
        format!("{}/live/{server}-{process:032x}", self.root)
    }

    /// The server and process that the name of a node below [`live`](Self::live) tells; none if it is no such name.
    pub fn live_of(name: &str) -> Option<(u32, u128)> {
        let (server, process) = name.split_once('-')?;
        let digits = process.len() == 32 && process.bytes().all(|b| b.is_ascii_hexdigit());
        let process = u128::from_str_radix(process, 16).ok().filter(|_| digits)?;
        Some((server.parse().ok()?, process))
    }

    /// Candidates for the office of the master.
    pub fn master(&self) -> String {
        format!("{}/master", self.root)
    }

    /// The start of the name of a candidate, which a number follows. The process is in it: who does not know whether
    /// its node was made finds it, and no forgotten node of its session is in office for ever.
    pub fn master_candidate(&self, process: u128) -> String {
        format!("{}/master/{}", self.root, Self::candidate(process))
    }

    /// The start of the names of the nodes of `process` below [`master`](Self::master).
    pub fn candidate(process: u128) -> String {
        format!("n_{process:032x}-")
    }

    /// Its version is raised by each new master, and checked by each write of a master.
    pub fn master_fence(&self) -> String {
        format!("{}/master_fence", self.root)
    }

    /// Groups.
    pub fn groups(&self) -> String {
        format!("{}/groups", self.root)
    }

    /// The configuration of one group. Never deleted: its versions would start anew.
    pub fn group(&self, group: u32) -> String {
        format!("{}/groups/{group}", self.root)
    }

    /// Tables: where clients begin to look.
    pub fn tables(&self) -> String {
        format!("{}/tables", self.root)
    }

    /// One table. Names have more characters than nodes: what is no letter, digit, `_` or `-` of ASCII stands as `%` and two
    /// hexadecimal digits for each byte.
    pub fn table(&self, table: &str) -> String {
        let mut path = self.tables();
        path.push('/');
        for byte in table.bytes() {
            match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'-' => path.push(byte.into()),
                other => path.push_str(&format!("%{other:02x}")),
            }
        }
        path
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_name_of_a_table_makes_one_node() {
        let paths = Paths::new("prod");
        let table = |name: &str| paths.table(name);
        assert_eq!(table("cities-2_a"), "/kreon/prod/tables/cities-2_a");
        assert_eq!(table("a/b"), "/kreon/prod/tables/a%2fb");
        assert_eq!(table(".."), "/kreon/prod/tables/%2e%2e");
        assert_eq!(table("Α%"), "/kreon/prod/tables/%ce%91%25");
    }

    #[test]
    fn the_name_of_a_live_process_tells_who_it_is() {
        let path = Paths::new("prod").live_process(3, 0xab);
        let name = path.rsplit('/').next().unwrap();
        assert_eq!(Paths::live_of(name), Some((3, 0xab)));
        for wrong in ["", "3", "3-ab", "-", "x-000000000000000000000000000000ab"] {
            assert_eq!(Paths::live_of(wrong), None, "{wrong}");
        }
        assert_eq!(Paths::live_of("3-+00000000000000000000000000000ab"), None);
    }
}
