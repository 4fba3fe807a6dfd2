//! Pages in the memory of the system: a block device (`zram`), and a file in `tmpfs`.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use kreon_base::PAGE_BYTES;
use rustix::fs::{Advice, fadvise};

use super::PAGES;
use super::device::fill;

const CONTROL: &str = "/sys/class/zram-control";

/// A block device in memory, removed when dropped.
///
/// `zram` keeps a page whose words are all equal as that word, without compressing it: a read fills the page, in the thread
/// that asks for it. The pages are such, so this device is as quick as a block device can be.
pub struct RamDisk {
    number: u32,
}

impl RamDisk {
    /// A device with the pages of a [`RamDevice`](super::device::RamDevice).
    ///
    /// # Errors
    /// If the system has no `zram`, or does not let this user make one.
    pub fn new() -> anyhow::Result<Self> {
        let added = fs::read_to_string(Path::new(CONTROL).join("hot_add"));
        let number = added.context("add a zram device")?;
        let disk = Self {
            number: number
                .trim()
                .parse()
                .context("the number of a zram device")?,
        };
        let size = format!("/sys/block/zram{}/disksize", disk.number);
        fs::write(&size, (PAGES * PAGE_BYTES as u64).to_string()).context("set its size")?;
        let file = File::options().write(true).open(disk.path());
        write_pages(file.context("open it")?)?;
        disk.forget()?;
        Ok(disk)
    }

    /// Where it is.
    pub fn path(&self) -> PathBuf {
        PathBuf::from(format!("/dev/zram{}", self.number))
    }

    /// Drops its pages from the page cache, the dirty ones written.
    ///
    /// # Errors
    /// If it cannot be opened.
    pub fn forget(&self) -> anyhow::Result<()> {
        let file = File::options().read(true).write(true).open(self.path())?;
        file.sync_all()?;
        Ok(fadvise(&file, 0, None, Advice::DontNeed)?)
    }
}

impl Drop for RamDisk {
    fn drop(&mut self) {
        let path = Path::new(CONTROL).join("hot_remove");
        if let Err(error) = fs::write(path, self.number.to_string()) {
            eprintln!("zram{} stays: {error}", self.number);
        }
    }
}

/// A file in memory, removed when dropped.
pub struct RamFile(PathBuf);

impl RamFile {
    /// A file with the same pages.
    ///
    /// # Errors
    /// If `/dev/shm` is no `tmpfs`, or has no room.
    pub fn new() -> anyhow::Result<Self> {
        /// `TMPFS_MAGIC` of the kernel.
        const TMPFS: i64 = 0x0102_1994;
        let folder = Path::new("/dev/shm");
        let about = rustix::fs::statfs(folder).context("look at /dev/shm")?;
        ensure!(about.f_type as i64 == TMPFS, "/dev/shm is no tmpfs");
        let path = folder.join(format!("kreon-bench-{}.pages", std::process::id()));
        let file = File::create(&path).with_context(|| format!("make {}", path.display()))?;
        let made = Self(path);
        write_pages(file)?;
        Ok(made)
    }

    /// Where it is.
    pub fn path(&self) -> PathBuf {
        self.0.clone()
    }
}

impl Drop for RamFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

fn write_pages(file: File) -> anyhow::Result<()> {
    let mut writer = BufWriter::with_capacity(1 << 20, file);
    let mut bytes = [0; PAGE_BYTES];
    for page in 0..PAGES {
        fill(page, &mut bytes);
        writer.write_all(&bytes)?;
    }
    Ok(writer.into_inner()?.sync_all()?)
}
