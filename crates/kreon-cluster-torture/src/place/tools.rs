//! Which faults this machine can make.

use std::path::Path;

use super::shell::run;

/// What there is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tools {
    /// Servers get network namespaces.
    pub has_network: bool,
    /// Servers get file systems of their own, which can be full or hang.
    pub has_disks: bool,
    /// Their devices can be made slow.
    pub has_throttle: bool,
}

/// Where control groups of block devices stand.
pub const BLKIO: &str = "/sys/fs/cgroup/blkio";

impl Tools {
    /// Tries it out. The second says what is missing, and what does not happen for that.
    pub fn find() -> (Self, Vec<String>) {
        let mut lacks = Vec::new();
        if !rustix::process::geteuid().is_root() {
            lacks.push("not root: no network namespaces, no disks of their own".to_owned());
            return (Self::default(), lacks);
        }
        let mut has = |what: &str, found: Result<(), String>| {
            found
                .map_err(|error| lacks.push(format!("{what}: {error}")))
                .is_ok()
        };
        let has_network = has("no cuts of the network", try_network());
        let has_disks = has("no full and hung disks", try_disks());
        let has_throttle = has_disks && has("no slow disks", try_throttle());
        let tools = Self {
            has_network,
            has_disks,
            has_throttle,
        };
        (tools, lacks)
    }
}

fn try_network() -> Result<(), String> {
    let name = format!("kreon{}", std::process::id() % 100_000);
    run(&["ip", "netns", "add", &name])?;
    let made = run(&["ip", "link", "add", &name, "type", "bridge"]);
    super::shell::try_to(&["ip", "link", "del", &name]);
    super::shell::try_to(&["ip", "netns", "del", &name]);
    made.map(drop)
}

fn try_disks() -> Result<(), String> {
    for tool in ["mkfs.ext4", "losetup", "fsfreeze"] {
        run(&[tool, "--version"])
            .or_else(|_| run(&[tool, "-V"]))
            .map_err(|error| format!("{tool} of e2fsprogs or util-linux: {error}"))?;
    }
    run(&["losetup", "--find"]).map(drop)
}

fn try_throttle() -> Result<(), String> {
    let file = Path::new(BLKIO).join("blkio.throttle.write_bps_device");
    match file.exists() {
        true => Ok(()),
        false => Err(format!(
            "no {} (control groups of version 1)",
            file.display()
        )),
    }
}
