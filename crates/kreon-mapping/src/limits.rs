//! Limits of the system on the memory of this process. A budget beyond them is refused at the opening, because otherwise
//! the process would be killed later.

use std::fs;
use std::path::{Path, PathBuf};

use kreon_base::{Error, Result};
use rustix::process::{Resource, getrlimit};

/// From here on a limit means none: version 1 of control groups writes the largest multiple of a page.
const NO_LIMIT_BYTES: u64 = 1 << 60;

/// A limit, and where it comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Limit {
    bytes: u64,
    of: String,
}

/// Refuses `memory_bytes` of memory, all of which will be used, if the control group of the process or the machine allows
/// less in addition to the memory in use. Limits that cannot be read do not count.
///
/// # Errors
/// `InvalidArgument`, with the limit and where it comes from.
pub fn check_memory(memory_bytes: u64) -> Result<()> {
    let used_bytes = kib(&read("/proc/self/status"), "RssAnon:");
    let limits = group_limits().into_iter().chain(machine_limit());
    check(limits, memory_bytes, used_bytes, "memory")
}

/// Refuses `address_bytes` of addresses if the process would exceed `RLIMIT_AS`.
pub(crate) fn check_addresses(address_bytes: u64) -> Result<()> {
    let Some(limit) = address_limit() else {
        return Ok(());
    };
    let used_bytes = kib(&read("/proc/self/status"), "VmSize:");
    check([limit], address_bytes, used_bytes, "addresses")
}

fn check(
    limits: impl IntoIterator<Item = Limit>,
    wanted_bytes: u64,
    used_bytes: Option<u64>,
    what: &str,
) -> Result<()> {
    let used_bytes = used_bytes.unwrap_or(0);
    let least = limits.into_iter().min_by_key(|limit| limit.bytes);
    match least {
        Some(limit) if wanted_bytes > limit.bytes.saturating_sub(used_bytes) => {
            Err(Error::invalid(format!(
                "{wanted_bytes} bytes of {what} are wanted, but {} allows this process {} bytes, of \
                 which {used_bytes} are in use",
                limit.of, limit.bytes
            )))
        }
        _ => Ok(()),
    }
}

/// The memory of the machine.
fn machine_limit() -> Option<Limit> {
    Some(Limit {
        bytes: kib(&read("/proc/meminfo"), "MemTotal:")?,
        of: "the machine".to_owned(),
    })
}

/// The limits of the control group of this process and of those above it.
fn group_limits() -> Vec<Limit> {
    let Some(group) = group(&read("/proc/self/cgroup"), &read("/proc/self/mountinfo")) else {
        return Vec::new();
    };
    let folders = group.path.ancestors();
    folders
        .take_while(|folder| folder.starts_with(&group.mount))
        .filter_map(|folder| {
            let file = folder.join(group.file);
            let bytes = fs::read_to_string(&file).ok()?.trim().parse().ok()?;
            let of = format!("the control group ({})", file.display());
            (bytes < NO_LIMIT_BYTES).then_some(Limit { bytes, of })
        })
        .collect()
}

/// Where the memory limits of a control group are.
#[derive(Debug, PartialEq, Eq)]
struct ControlGroup {
    mount: PathBuf,
    path: PathBuf,
    file: &'static str,
}

/// The group with the memory controller: of version 1 if that has it, else of version 2.
fn group(own: &str, mounts: &str) -> Option<ControlGroup> {
    let version_1 = own.lines().find_map(|line| {
        let (_, rest) = line.split_once(':')?;
        let (controllers, path) = rest.split_once(':')?;
        controllers
            .split(',')
            .any(|name| name == "memory")
            .then_some(path)
    });
    let version_2 = || own.lines().find_map(|line| line.strip_prefix("0::"));
    let (path, kind, file) = match version_1 {
        Some(path) => (path, "cgroup", "memory.limit_in_bytes"),
        None => (version_2()?, "cgroup2", "memory.max"),
    };
    mounts.lines().find_map(|line| {
        // "36 35 98:0 ROOT MOUNT options ... - KIND source options"
        let (before, after) = line.split_once(" - ")?;
        let mut after = after.split(' ');
        let is_kind = after.next() == Some(kind);
        let options = after.nth(1).unwrap_or_default();
        if !is_kind || (kind == "cgroup" && !options.split(',').any(|name| name == "memory")) {
            return None;
        }
        let mut before = before.split(' ').skip(3);
        let (root, mount) = (before.next()?, PathBuf::from(before.next()?));
        // In a container the mount may show a part of the tree only.
        let below = Path::new(path).strip_prefix(root).unwrap_or(Path::new(""));
        Some(ControlGroup {
            path: mount.join(below),
            mount,
            file,
        })
    })
}

/// `RLIMIT_AS`. By a system call, which costs less than to read `/proc/self/limits`.
fn address_limit() -> Option<Limit> {
    Some(Limit {
        bytes: getrlimit(Resource::As).current?,
        of: "RLIMIT_AS".to_owned(),
    })
}

/// The value of a line such as `VmSize:   1234 kB`, in bytes.
fn kib(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kib << 10)
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_group_is_found_in_both_versions_and_in_containers() {
        let group = |own, mounts| group(own, mounts).map(|group| (group.path, group.file));
        let first = "9:name=systemd:/\n4:cpu,memory:/jobs/a\n0::/";
        let mounts = "35 31 0:32 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n\
                      36 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n\
                      41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw";
        let expected = (
            PathBuf::from("/sys/fs/cgroup/memory/jobs/a"),
            "memory.limit_in_bytes",
        );
        assert_eq!(group(first, mounts), Some(expected));
        let second = "31 23 0:28 / /sys/fs/cgroup rw shared:9 - cgroup2 cgroup2 rw";
        let expected = (PathBuf::from("/sys/fs/cgroup/user/a"), "memory.max");
        assert_eq!(group("0::/user/a", second), Some(expected));
        let container = "31 23 0:28 /docker/x /sys/fs/cgroup rw - cgroup2 cgroup2 rw";
        let expected = (PathBuf::from("/sys/fs/cgroup"), "memory.max");
        assert_eq!(group("0::/docker/x", container), Some(expected));
        assert_eq!(group("", ""), None);
        assert_eq!(group("nonsense", "more - of it"), None);
    }

    #[test]
    fn more_than_the_least_limit_leaves_is_refused_with_its_name() {
        let limit = |bytes, of: &str| Limit {
            bytes,
            of: of.to_owned(),
        };
        let limits = || [limit(1000, "the machine"), limit(600, "the group")];
        assert!(check(limits(), 500, Some(100), "memory").is_ok());
        let error = check(limits(), 501, Some(100), "memory").unwrap_err();
        assert!(error.to_string().contains("the group allows"), "{error}");
        assert!(check(limits(), 501, None, "memory").is_ok());
        assert!(check([], u64::MAX, None, "memory").is_ok());
    }

    #[test]
    fn what_the_process_uses_is_read() {
        let status = "VmSize:\t   12 kB\nRssAnon: 3 kB";
        assert_eq!(kib(status, "VmSize:"), Some(12 << 10));
        assert_eq!(kib("", "VmSize:"), None);
    }

    #[test]
    fn addresses_over_the_limit_of_the_process_are_refused() {
        let inside = "limits::tests::inside_a_limit_of_4_gib";
        let run = format!("ulimit -v 4194304 && exec \"$0\" --ignored --exact {inside}");
        let mut shell = std::process::Command::new("sh");
        let shell = shell.arg("-c").arg(run);
        let output = shell.arg(std::env::current_exe().unwrap()).output();
        let output = output.unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(
            output.status.success() && said.contains("1 passed"),
            "{said}"
        );
    }

    /// Run by the test above it; by itself it has no limit to see.
    #[test]
    #[ignore = "needs a process of its own"]
    fn inside_a_limit_of_4_gib() {
        if address_limit().is_none() {
            return;
        }
        assert!(check_addresses(1 << 30).is_ok());
        let error = check_addresses(4 << 30).unwrap_err();
        assert!(error.to_string().contains("RLIMIT_AS"), "{error}");
    }
}
