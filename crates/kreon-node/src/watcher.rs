//! The thread that watches the configurations of all groups, and the tables.

use std::sync::Arc;
use std::sync::Weak;
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use kreon_base::{Error, Result};
use kreon_coord::{Command, Mode, Paths, Reply};
use kreon_replica::drive::Server;
use kreon_replica::machine::Version;
use kreon_sync::{AtomicBool, Ordering};
use kreon_wire::{GroupConfig, GroupId, LimitsNode, Member};

use crate::answer::Desk;
use crate::holding::Holding;
use crate::hosted::Office;
use crate::orders::limits_path;
use crate::settings::Coordination;
use crate::talk::{Talk, unexpected};

/// It looks so often whether it is to end, and whether ranges are to be given up.
const EVERY: Duration = Duration::from_millis(100);

/// A session that failed is followed by another one after this.
const AGAIN: Duration = Duration::from_millis(200);

/// What the thread has.
pub struct Watching {
    pub me: Member,
    pub paths: Paths,
    pub groups: Vec<GroupId>,
    /// Told to whoever is the master.
    pub limits: LimitsNode,
    pub coordination: Coordination,
    pub server: Weak<Server>,
    pub desk: Arc<Desk>,
    pub holding: Arc<Holding>,
}

/// The thread that watches the configurations of all groups, and the tables.
pub struct Watcher {
    is_over: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Watcher {
    /// Starts it with a session.
    ///
    /// # Errors
    /// `Io`: no thread can be started.
    pub fn start(watching: Watching, talk: Talk) -> Result<Self> {
        let is_over = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&is_over);
        let thread = Builder::new().name("kreon-watch".into());
        let thread = thread.spawn(move || watching.run(talk, &ends));
        let thread = thread.map_err(|error| Error::io("start a thread of a server", error))?;
        Ok(Self { is_over, thread })
    }

    /// Ends it.
    pub fn end(self) {
        self.is_over.store(true, Ordering::Release);
        if self.thread.join().is_err() {
            tracing::error!("the thread that watches groups had panicked");
        }
    }
}

impl Watching {
    fn run(&self, talk: Talk, is_over: &AtomicBool) {
        let mut talk = Some(talk);
        while !is_over.load(Ordering::Acquire) {
            let session = match talk.take() {
                Some(talk) => Ok(talk),
                None => self.coordination.begin().map(Talk::new),
            };
            let watched = session.and_then(|mut talk| self.watch(&mut talk, is_over));
            if let Err(error) = watched {
                tracing::warn!(%error, "groups are not watched");
                kreon_sync::sleep(AGAIN);
            }
        }
    }

    /// Watches until the end, or until the session fails.
    fn watch(&self, talk: &mut Talk, is_over: &AtomicBool) -> Result<()> {
        for group in &self.groups {
            self.look(talk, *group)?;
        }
        talk.children(&self.paths.tables(), true)?;
        let mut is_told = false;
        // Whether a dropped table has ranges here, is seen when something has changed; and once more after a failure.
        let mut is_due = true;
        while !is_over.load(Ordering::Acquire) {
            is_told = is_told || self.tell_limits(talk)?;
            for path in talk.changed(EVERY)? {
                is_due = true;
                let name = path.strip_prefix(&self.paths.groups());
                let name = name.and_then(|name| name.strip_prefix('/'));
                match name.and_then(|name| name.parse().ok()) {
                    Some(group) => self.look(talk, GroupId(group))?,
                    None => drop(talk.children(&self.paths.tables(), true)?),
                }
            }
            // One more round when the primary has seen what was seen here.
            is_due = is_due && !self.give_up_ranges(talk)?;
        }
        Ok(())
    }

    /// Tells what this server takes on; false if it is not registered yet.
    fn tell_limits(&self, talk: &mut Talk) -> Result<bool> {
        let path = limits_path(&self.paths, self.me.server);
        let data: Arc<[u8]> = self.limits.encode().into();
        let written = match talk.read(&path, false)? {
            Some(node) if node.data == data => return Ok(true),
            Some(node) => talk.call(Command::Set(path, data, node.version))?,
            None => talk.call(Command::Create(path, data, Mode::Persistent))?,
        };
        match written {
            Reply::Written(_) | Reply::Created(_) => Ok(true),
            // The server is not registered yet, or an earlier start of it tells, too.
            Reply::Missing | Reply::Exists | Reply::Conflict => Ok(false),
            other => Err(unexpected(&other)),
        }
    }

    fn look(&self, talk: &mut Talk, group: GroupId) -> Result<()> {
        let Some(node) = talk.read(&self.paths.group(group.0), true)? else {
            return Ok(());
        };
        let Some(server) = self.server.upgrade() else {
            return Ok(());
        };
        let followed = GroupConfig::decode(&node.data)
            .map_err(Error::from)
            .and_then(|config| self.holding.follow(&server, &config));
        if let Err(error) = followed {
            tracing::error!(%error, group = group.0, "a group cannot be held as its configuration says");
        }
        Ok(())
    }

    /// Drops the tables that have no node any more, and gives up their ranges. Whether none is left.
    fn give_up_ranges(&self, talk: &mut Talk) -> Result<bool> {
        let mut is_done = true;
        for hosted in self.desk.groups() {
            let Some(office) = hosted.office() else {
                continue;
            };
            let holds = office.holds();
            let mut orphans = Vec::new();
            for table in holds.tables() {
                if talk.read(&self.paths.table(table), false)?.is_none() {
                    orphans.push(table);
                }
            }
            for table in orphans.into_iter().chain(holds.leaving()) {
                is_done = false;
                self.give_up(talk, (hosted.id, &office), table)?;
            }
        }
        Ok(is_done)
    }

    /// A table without a node is dropped, and its ranges leave, if this server is still in office.
    fn give_up(
        &self,
        talk: &mut Talk,
        (group, office): (GroupId, &Office),
        table: &str,
    ) -> Result<()> {
        let path = self.paths.group(group.0);
        let Some(node) = talk.read(&path, false)? else {
            return Ok(());
        };
        let mut config = GroupConfig::decode(&node.data)?;
        if config.primary != Some(self.me) || config.term != office.term {
            return Ok(());
        }
        let has_left = |version: kreon_coord::Version| office.has_left(table, Version(version.0));
        if !config.ranges.iter().any(|range| range.table == table) {
            has_left(node.version);
            return Ok(());
        }
        // Only this primary removes the ranges, and nobody makes the table anew while they are there: so long as the table
        // has no node now, what is dropped is not the next table of this name.
        if talk.read(&self.paths.table(table), false)?.is_some() {
            has_left(node.version);
            return Ok(());
        }
        tracing::info!(group = group.0, table, "a dropped table goes");
        if let Err(error) = office.drop_table(table) {
            // The office may be over; the next one drops it.
            tracing::warn!(%error, table, "a table is not dropped");
            return Ok(());
        }
        config.ranges.retain(|range| range.table != table);
        let set = Command::Set(path, config.encode().into(), node.version);
        match talk.call(set)? {
            Reply::Written(version) => has_left(version),
            Reply::Conflict => {}
            other => return Err(unexpected(&other)),
        }
        Ok(())
    }
}
