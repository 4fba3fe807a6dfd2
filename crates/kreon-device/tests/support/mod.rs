//! Scratch files and mounts for the tests of files.
#![allow(dead_code, reason = "each test file uses a part")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;

use kreon_base::ErrorKind;
use kreon_device::{AlignedBuf, Facility, FileDevice, FileOptions, TransferQueue, Transferred};

/// A folder of its own for one test, removed at the end.
pub struct Scratch(PathBuf);

impl Scratch {
    pub fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Relaxed);
        let name = format!("device-{}-{number}", std::process::id());
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A small tmpfs, unmounted at the end.
pub struct Tmpfs {
    pub folder: Scratch,
}

impl Tmpfs {
    /// `None`, with a message, where mounting is not permitted.
    pub fn mount(size: &str) -> Option<Self> {
        let folder = Scratch::new();
        let options = format!("size={size}");
        let done = run(
            "mount",
            &["-t", "tmpfs", "-o", &options, "tmpfs"],
            &folder.0,
        );
        if !done {
            eprintln!("skipped: mounting a tmpfs is not permitted here");
            return None;
        }
        Some(Self { folder })
    }
}

impl Drop for Tmpfs {
    fn drop(&mut self) {
        run("umount", &[], &self.folder.0);
    }
}

/// A file system in memory without `fallocate` and holes, unmounted at the end.
pub struct Ramfs {
    pub folder: Scratch,
}

impl Ramfs {
    /// `None`, with a message, where mounting is not permitted.
    pub fn mount() -> Option<Self> {
        let folder = Scratch::new();
        if !run("mount", &["-t", "ramfs", "ramfs"], &folder.0) {
            eprintln!("skipped: mounting a ramfs is not permitted here");
            return None;
        }
        Some(Self { folder })
    }
}

impl Drop for Ramfs {
    fn drop(&mut self) {
        run("umount", &[], &self.folder.0);
    }
}

/// A file as a block device, detached at the end.
pub struct Loop {
    pub device: PathBuf,
    _folder: Scratch,
}

impl Loop {
    /// `None`, with a message, where loop devices are not permitted.
    pub fn attach(len_bytes: u64) -> Option<Self> {
        let folder = Scratch::new();
        let file = folder.path("backing");
        fs::File::create(&file).unwrap().set_len(len_bytes).unwrap();
        let output = Command::new("losetup")
            .args(["--find", "--show"])
            .arg(&file)
            .output();
        match output {
            Ok(output) if output.status.success() => Some(Self {
                device: String::from_utf8(output.stdout).unwrap().trim().into(),
                _folder: folder,
            }),
            _ => {
                eprintln!("skipped: loop devices are not permitted here");
                None
            }
        }
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        run("losetup", &["--detach"], &self.device);
    }
}

/// Runs `program arguments path`; returns whether it succeeded.
pub fn run(program: &str, arguments: &[&str], path: &Path) -> bool {
    let output = Command::new(program).args(arguments).arg(path).output();
    output.is_ok_and(|output| output.status.success())
}

/// The four combinations of direct I/O and rings.
pub fn ways() -> Vec<FileOptions> {
    let mut ways = Vec::new();
    for direct in [Facility::Auto, Facility::Off] {
        for ring in [Facility::Auto, Facility::Off] {
            ways.push(FileOptions {
                create: true,
                direct,
                ring,
                ..FileOptions::default()
            });
        }
    }
    ways
}

pub fn creating() -> FileOptions {
    ways().swap_remove(0)
}

/// A new file of `len_bytes`.
pub fn device(path: &Path, options: &FileOptions, len_bytes: u64) -> FileDevice {
    use kreon_device::Device;
    let (device, created) = FileDevice::open(path, options).unwrap();
    assert!(created);
    device.grow(len_bytes).unwrap();
    device
}

/// Bytes that depend on their position.
pub fn pattern(len_bytes: usize, seed: u64) -> AlignedBuf {
    let mut buf = AlignedBuf::new(len_bytes);
    for (place, chunk) in buf.chunks_mut(8).enumerate() {
        let word = (place as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ seed;
        chunk.copy_from_slice(&word.to_le_bytes()[..chunk.len()]);
    }
    buf
}

/// Longer than any test may take: a wait that is not ended as it should be is found out.
pub const FOR_EVER: Duration = Duration::from_secs(1000);

/// Waits for all that is in flight.
pub fn finish(queue: &mut dyn TransferQueue) -> Vec<Transferred> {
    let mut ended = Vec::new();
    while queue.in_flight() > 0 {
        queue.wait(FOR_EVER);
        queue.reap(&mut ended);
    }
    ended
}

/// The kind of failure of each transfer, by tag.
pub fn kinds(mut ended: Vec<Transferred>) -> Vec<(u64, Option<ErrorKind>)> {
    ended.sort_by_key(|one| one.tag);
    let kind = |one: Transferred| (one.tag, one.outcome.err().map(|error| error.kind()));
    ended.into_iter().map(kind).collect()
}

/// Whether `bytes` are those of `pattern`.
pub fn is_pattern(bytes: &[u8], seed: u64) -> bool {
    bytes[..] == pattern(bytes.len(), seed)[..]
}
