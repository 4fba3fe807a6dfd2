//! An opening is refused if the budget exceeds the memory that the process may have, before the system would kill the
//! process. The limit is set for a child process, which is this test again.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Set in the child: the file for joining the control group.
const DOOR: &str = "KREON_TEST_GROUP_DOOR";

const LIMIT_BYTES: usize = 96 << 20;

/// A control group with a limit; removed when dropped.
struct Group(PathBuf);

impl Group {
    /// `None` if this machine does not permit it, as in most containers.
    fn new() -> Option<Self> {
        let name = format!("kreon-test-{}", std::process::id());
        let first = Path::new("/sys/fs/cgroup/memory").join(&name);
        let second = Path::new("/sys/fs/cgroup").join(&name);
        [(first, "memory.limit_in_bytes"), (second, "memory.max")]
            .into_iter()
            .find_map(|(folder, file)| {
                std::fs::create_dir(&folder).ok()?;
                let group = Self(folder);
                let limit = std::fs::write(group.0.join(file), LIMIT_BYTES.to_string());
                limit.is_ok().then_some(group)
            })
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.0);
    }
}

#[test]
fn more_memory_than_the_control_group_allows_is_refused_at_open() {
    if let Some(door) = std::env::var_os(DOOR) {
        return open_under_limit(Path::new(&door));
    }
    let Some(group) = Group::new() else {
        println!("not tested: no right to make a control group");
        return;
    };
    let ended = Command::new(std::env::current_exe().expect("this test"))
        .arg("--test-threads=1")
        .env(DOOR, group.0.join("cgroup.procs"))
        .output()
        .expect("a child");
    let text = String::from_utf8_lossy(&ended.stdout);
    assert!(ended.status.success(), "{}: {text}", ended.status);
    assert!(text.contains("1 passed"), "{text}");
}

fn open_under_limit(door: &Path) {
    std::fs::write(door, "0").expect("enter the group");
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("store.kreon");
    let open = |bytes| kreon::Store::options().memory_bytes(bytes).open(&path);
    let refused = open(LIMIT_BYTES).expect_err("refused");
    assert_eq!(refused.kind(), kreon::ErrorKind::InvalidArgument);
    assert!(refused.to_string().contains("control group"), "{refused}");
    assert!(!path.exists() || std::fs::metadata(&path).expect("metadata").len() == 0);
    // The rest is for code and the test itself.
    open(LIMIT_BYTES / 2).expect("enough memory");
}
