//! The memory limit of a process: a control group of its own, of version 1 or 2.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context, bail};

/// A control group; deleted when dropped, after its processes have ended.
pub struct Limit {
    group: PathBuf,
    procs: &'static str,
}

impl Limit {
    /// A group whose processes get `memory_bytes`, page cache included, and no swap.
    ///
    /// # Errors
    /// If the machine does not let us.
    pub fn new(memory_bytes: u64) -> anyhow::Result<Self> {
        // A new one for each: an old one may still hold pages of the store before.
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("kreon-bench-{}-{number}", std::process::id());
        Self::version_1(&name, memory_bytes).or_else(|first| {
            Self::version_2(&name, memory_bytes).with_context(|| format!("{first:#}"))
        })
    }

    fn version_1(name: &str, memory_bytes: u64) -> anyhow::Result<Self> {
        let root = Path::new("/sys/fs/cgroup/memory");
        if !root.join("memory.limit_in_bytes").exists() {
            bail!("there is no memory controller of version 1");
        }
        let limit = Self::make(&root.join(name), "cgroup.procs")?;
        limit.set("memory.limit_in_bytes", memory_bytes)?;
        // Without swap accounting there is no such file, and mostly no swap.
        let _ = limit.set("memory.swappiness", 0);
        Ok(limit)
    }

    fn version_2(name: &str, memory_bytes: u64) -> anyhow::Result<Self> {
        let root = Path::new("/sys/fs/cgroup");
        let controllers = fs::read_to_string(root.join("cgroup.subtree_control"));
        if !controllers.is_ok_and(|list| list.split_whitespace().any(|name| name == "memory")) {
            bail!("there is no memory controller of version 2");
        }
        let limit = Self::make(&root.join(name), "cgroup.procs")?;
        limit.set("memory.max", memory_bytes)?;
        let _ = limit.set("memory.swap.max", 0);
        Ok(limit)
    }

    fn make(group: &Path, procs: &'static str) -> anyhow::Result<Self> {
        if !group.exists() {
            fs::create_dir(group).with_context(|| format!("make {}", group.display()))?;
        }
        Ok(Self {
            group: group.to_owned(),
            procs,
        })
    }

    fn set(&self, file: &str, value: u64) -> anyhow::Result<()> {
        let path = self.group.join(file);
        fs::write(&path, value.to_string()).with_context(|| format!("set {}", path.display()))
    }

    /// Whether a process had to be killed because it needed more.
    pub fn has_killed(&self) -> bool {
        // Version 1 and version 2 have the same line in different files.
        let files = ["memory.oom_control", "memory.events"];
        files.iter().any(|file| {
            let text = fs::read_to_string(self.group.join(file)).unwrap_or_default();
            super::usage::field(&text, "oom_kill ") > 0
        })
    }

    /// The file that a process writes 0 into to come under the limit.
    pub fn door(&self) -> PathBuf {
        self.group.join(self.procs)
    }
}

impl Drop for Limit {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.group);
    }
}

/// Brings this process under the limit with that door.
///
/// # Errors
/// If the machine does not let us.
pub fn enter(door: &Path) -> anyhow::Result<()> {
    fs::write(door, "0").with_context(|| format!("enter {}", door.display()))
}
