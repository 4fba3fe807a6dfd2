//! A file system of its own for a server: in an image on a loop device, so that it can be full, slow or hung.

use std::fs;
use std::path::{Path, PathBuf};

use super::shell::{run, try_to};
use super::tools::BLKIO;

/// A file of this name takes what is left when the disk is to be full.
const FILLER: &str = "filler";

/// A mounted image; unmounted at its end. The image stays.
pub struct Disk {
    folder: PathBuf,
    device: String,
    /// Its control group.
    group: PathBuf,
}

impl Disk {
    /// Makes an image of `bytes` beside `folder` and mounts it there.
    ///
    /// # Errors
    /// What the system says.
    pub fn make(folder: &Path, bytes: u64, has_throttle: bool) -> Result<Self, String> {
        let said = |error: std::io::Error| format!("{}: {error}", folder.display());
        fs::create_dir_all(folder).map_err(said)?;
        let image = folder.with_extension("image");
        let file = fs::File::create(&image).map_err(said)?;
        file.set_len(bytes).map_err(said)?;
        drop(file);
        let image_text = image.display().to_string();
        // Without room for root only, which the server may be.
        run(&["mkfs.ext4", "-q", "-F", "-m", "0", &image_text])?;
        let device = run(&["losetup", "--find", "--show", &image_text])?;
        let device = device.trim().to_owned();
        let name = format!(
            "kreon{}-{}",
            std::process::id(),
            device.trim_start_matches("/dev/")
        );
        let disk = Self {
            folder: folder.to_owned(),
            device,
            group: Path::new(BLKIO).join(name),
        };
        run(&["mount", &disk.device, &folder.display().to_string()])?;
        if has_throttle {
            fs::create_dir(&disk.group).map_err(said)?;
        }
        Ok(disk)
    }

    /// The process is slow when the disk is.
    ///
    /// # Errors
    /// What the system says.
    pub fn adopt(&self, process: u32) -> Result<(), String> {
        match self.group.exists() {
            true => self.write("cgroup.procs", &process.to_string()),
            false => Ok(()),
        }
    }

    /// Takes all free space.
    ///
    /// # Errors
    /// What the system says.
    pub fn fill(&self) -> Result<(), String> {
        let filler = self.folder.join(FILLER).display().to_string();
        let free = run(&[
            "stat",
            "-f",
            "-c",
            "%a %S",
            &self.folder.display().to_string(),
        ])?;
        let mut numbers = free
            .split_whitespace()
            .filter_map(|word| word.parse::<u64>().ok());
        let bytes = numbers.next().unwrap_or(0) * numbers.next().unwrap_or(0);
        // The server takes some meanwhile, and the file system needs some for the file: what is left is filled in pieces.
        let mut piece = bytes;
        let mut at = 0;
        while piece >= 4096 {
            let (offset, length) = (at.to_string(), piece.to_string());
            match run(&["fallocate", "-o", &offset, "-l", &length, &filler]) {
                Ok(_) => at += piece,
                Err(_) => piece /= 2,
            }
        }
        Ok(())
    }

    /// Gives it back.
    ///
    /// # Errors
    /// What the system says.
    pub fn empty(&self) -> Result<(), String> {
        let filler = self.folder.join(FILLER);
        match fs::remove_file(&filler) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(format!("{}: {error}", filler.display()))
            }
            _ => Ok(()),
        }
    }

    /// At most so many bytes a second are written and read.
    ///
    /// # Errors
    /// What the system says.
    pub fn slow_down(&self, bytes_per_s: u64) -> Result<(), String> {
        let number = fs::metadata(&self.device).map_err(|error| error.to_string())?;
        let number = std::os::unix::fs::MetadataExt::rdev(&number);
        let (major, minor) = (number >> 8 & 0xfff, number & 0xff);
        let limit = format!("{major}:{minor} {bytes_per_s}");
        self.write("blkio.throttle.write_bps_device", &limit)?;
        self.write("blkio.throttle.read_bps_device", &limit)
    }

    /// As fast as it can.
    ///
    /// # Errors
    /// What the system says.
    pub fn speed_up(&self) -> Result<(), String> {
        match self.group.exists() {
            true => self.slow_down(0),
            false => Ok(()),
        }
    }

    /// Every write waits.
    ///
    /// # Errors
    /// What the system says.
    pub fn freeze(&self) -> Result<(), String> {
        run(&["fsfreeze", "--freeze", &self.folder.display().to_string()]).map(drop)
    }

    /// They go on.
    ///
    /// # Errors
    /// What the system says.
    pub fn thaw(&self) -> Result<(), String> {
        run(&["fsfreeze", "--unfreeze", &self.folder.display().to_string()]).map(drop)
    }

    fn write(&self, file: &str, text: &str) -> Result<(), String> {
        let path = self.group.join(file);
        fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let folder = self.folder.display().to_string();
        try_to(&["fsfreeze", "--unfreeze", &folder]);
        try_to(&["umount", "--lazy", &folder]);
        try_to(&["losetup", "--detach", &self.device]);
        let _ = fs::remove_dir(&self.group);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;
    use crate::place::tools::Tools;

    #[test]
    fn a_full_disk_takes_nothing_until_it_is_emptied() {
        let (tools, lacks) = Tools::find();
        if !tools.has_disks {
            eprintln!("SKIPPED: {lacks:?}");
            return;
        }
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("1");
        let disk = Disk::make(&folder, 32 << 20, tools.has_throttle).unwrap();
        let put = |bytes: usize| -> std::io::Result<()> {
            let mut file = fs::File::create(folder.join("file"))?;
            file.write_all(&vec![1; bytes])?;
            file.sync_all()
        };
        put(1 << 20).unwrap();
        disk.fill().unwrap();
        assert!(put(4 << 20).is_err());
        disk.empty().unwrap();
        put(4 << 20).unwrap();
        disk.adopt(std::process::id()).unwrap();
        disk.speed_up().unwrap();
        drop(disk);
        assert!(!folder.join("file").exists());
    }
}
