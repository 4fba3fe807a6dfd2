//! The groups that a server holds: those whose configuration names it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use kreon_base::{Error, Result};
use kreon_engine::Options;
use kreon_replica::drive::{FileVolume, GroupSettings, Host, Server, Volume};
use kreon_replica::follower::Capacity;
use kreon_wire::{GroupConfig, GroupId, ServerId};

use crate::answer::Desk;
use crate::hosted::Hosted;
use crate::settings::NodeSettings;

/// What was written last is made durable at the end, if that takes no longer.
const SETTLE: Duration = Duration::from_secs(1);

/// Log that a backup keeps in memory: as much as the primary's buffers.
const LOG_BYTES_MIN: u64 = 4 << 20;
const LOG_BYTES_MAX: u64 = 32 << 20;

/// The groups that a server holds.
pub struct Holding {
    me: ServerId,
    folder: PathBuf,
    settings: GroupSettings,
    desk: Arc<Desk>,
}

impl Holding {
    pub fn new(settings: &NodeSettings, desk: &Arc<Desk>) -> Self {
        let store_bytes = settings.store_bytes();
        let options = Options {
            memory_bytes: usize::try_from(store_bytes).unwrap_or(usize::MAX),
            ..settings.store.clone()
        };
        let capacity = Capacity {
            log_bytes: (store_bytes / 16).clamp(LOG_BYTES_MIN, LOG_BYTES_MAX),
            ..Capacity::default()
        };
        Self {
            me: settings.server,
            folder: settings.folder.clone(),
            settings: GroupSettings {
                id: GroupId(0),
                options,
                capacity,
                timing: settings.timing,
            },
            desk: Arc::clone(desk),
        }
    }

    /// Holds a group, or gives it up, as its configuration says now.
    ///
    /// # Errors
    /// Those of its files.
    pub fn follow(&self, server: &Server, config: &GroupConfig) -> Result<()> {
        let is_member = config.members.contains(&self.me);
        let is_here = self.desk.group(config.group).is_some();
        match (is_member, is_here) {
            (true, false) => self.add(server, config.group),
            (false, true) => {
                // Its files go when others have what is in them.
                let is_led = config.primary.is_some();
                self.remove(server, config.group, is_led)
            }
            _ => Ok(()),
        }
    }

    fn add(&self, server: &Server, group: GroupId) -> Result<()> {
        tracing::info!(group = group.0, "a group is held here");
        let volume = FileVolume::new(self.path(group));
        let hosted = Hosted::new(group, volume.clone());
        let settings = GroupSettings {
            id: group,
            ..self.settings.clone()
        };
        let held = server.add_group(
            settings,
            Arc::new(volume) as Arc<dyn Volume>,
            Arc::clone(&hosted) as Arc<dyn Host>,
        )?;
        hosted.set_group(&held);
        self.desk.add(hosted);
        Ok(())
    }

    fn remove(&self, server: &Server, group: GroupId, deletes: bool) -> Result<()> {
        tracing::info!(group = group.0, deletes, "a group is given up here");
        self.desk.remove(group);
        server.remove_group(group);
        match deletes {
            true => delete_volumes(&self.path(group)),
            false => Ok(()),
        }
    }

    fn path(&self, group: GroupId) -> PathBuf {
        self.folder.join(format!("group-{}", group.0))
    }

    /// Makes what was written last durable on all members, as far as that is quick.
    pub fn settle(&self) {
        let mut wanted = Vec::new();
        for hosted in self.desk.groups() {
            if let (Some(office), Some(group)) = (hosted.office(), hosted.group()) {
                let tail = office.engine.log_tail();
                group.sync(tail);
                wanted.push((office, tail));
            }
        }
        let start = Instant::now();
        while start.elapsed() < SETTLE {
            wanted.retain(|(office, tail)| office.engine.log_durable() < *tail);
            if wanted.is_empty() {
                return;
            }
            kreon_sync::sleep(Duration::from_millis(2));
        }
    }
}

/// Deletes the volumes of a group, which are called `path` with a number behind. What it has seen of configurations stays.
fn delete_volumes(path: &Path) -> Result<()> {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return Ok(());
    };
    let name = format!("{}.", name.to_string_lossy());
    let said = |error| Error::io(format!("delete {}", path.display()), error);
    for entry in std::fs::read_dir(folder).map_err(said)? {
        let entry = entry.map_err(said)?;
        let found = entry.file_name();
        let number = found.to_str().and_then(|found| found.strip_prefix(&name));
        if number.is_some_and(|number| number.parse::<u64>().is_ok()) {
            std::fs::remove_file(entry.path()).map_err(said)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn volumes_of_one_group_go_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let names = ["group-1.1", "group-1.2", "group-1.seen", "group-10.1"];
        for name in names {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        delete_volumes(&folder.path().join("group-1")).unwrap();
        let left = names.map(|name| folder.path().join(name).exists());
        assert_eq!(left, [false, false, true, true]);
    }
}
