//! A server from start to end.

use std::sync::Arc;
use std::time::{Duration, Instant};

use kreon_base::{Error, Result};
use kreon_coord::Paths;
use kreon_fabric::Address;
use kreon_sync::Mutex;
use kreon_wire::limits::NODE_VERSION;
use kreon_wire::{FormatNode, GroupId, LimitsNode, Member};

use crate::hosted::Hosted;
use crate::mark::Mark;
use crate::parts::Parts;
use crate::settings::NodeSettings;
use crate::status::NodeStatus;
use crate::talk::Talk;
use crate::watcher::{Watcher, Watching};

/// While others take over it is looked so often whether they have.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// A server of a cluster that runs in this process. Dropping it ends it.
pub struct Node {
    parts: Arc<Parts>,
    watcher: Mutex<Option<Watcher>>,
    _mark: Mark,
}

impl Node {
    /// Starts a server: takes its folder, listens, registers, and holds every group that names it.
    ///
    /// # Errors
    /// `InvalidArgument`: a setting, a folder of another server, or no such cluster; `Busy`: folder or port are taken; `Io`:
    /// the coordinator cannot be reached, or a file not be made.
    pub fn start(settings: NodeSettings) -> Result<Self> {
        settings.check()?;
        let paths = Paths::new(&settings.cluster);
        let mut talk = Talk::new(settings.coordination.begin()?);
        let groups = groups_of(&mut talk, &paths, &settings.cluster)?;
        let mark = Mark::take(&settings.folder, &settings.cluster, settings.server)?;
        let parts = Arc::new(Parts::new(settings, &paths, groups.clone())?);
        let watching = Watching {
            me: parts.me,
            paths,
            groups,
            limits: LimitsNode {
                primaries_max: parts.settings.primaries_max,
            },
            coordination: parts.settings.coordination.clone(),
            server: Arc::downgrade(&parts.server),
            desk: Arc::clone(&parts.desk),
            holding: Arc::clone(&parts.holding),
        };
        let watcher = Watcher::start(watching, talk);
        let node = Self {
            parts,
            watcher: Mutex::new(None),
            _mark: mark,
        };
        // If it fails, the server is ended by the drop of this.
        *node.watcher.lock() = Some(watcher?);
        Ok(node)
    }

    /// Where others reach it.
    pub fn address(&self) -> Address {
        Address::new(&self.parts.address)
    }

    /// The server, in this start.
    pub fn me(&self) -> Member {
        self.parts.me
    }

    /// Ends it: no request is taken any more, what its primaries have acknowledged is made durable where that is quick, and
    /// the others find out that it is gone. A second call does nothing.
    pub fn end(&self) {
        let Some(watcher) = self.watcher.lock().take() else {
            return;
        };
        self.parts.pool.end();
        self.parts.orders.end();
        watcher.end();
        self.parts.holding.settle();
        self.parts.server.end();
    }

    /// Has other members promoted for the groups of which it is the primary, as before an end that is planned: clients wait no
    /// longer than for a hand-over. Takes as long as that, at most `limit`. Groups of which it is the primary all the same:
    /// nobody else is in sync, or nobody took over in time.
    pub fn hand_over(&self, limit: Duration) -> usize {
        let until = Instant::now() + limit;
        let mut held = self.parts.desk.groups();
        held.retain(|hosted| hosted.office().is_some());
        let leads = |hosted: &&Arc<Hosted>| hosted.office().is_some();
        while Instant::now() < until && !held.iter().all(|hosted| self.has_left(hosted)) {
            let led: Vec<GroupId> = held.iter().filter(leads).map(|held| held.id).collect();
            if !led.is_empty() {
                match self.parts.orders.leave(&led, until) {
                    Ok(0) if led.len() == held.len() => break,
                    Ok(_) => {}
                    Err(refusal) => {
                        tracing::info!(why = refusal.text, "offices are not handed over yet");
                    }
                }
            }
            kreon_sync::sleep(LOOK_EVERY);
        }
        held.iter().filter(leads).count()
    }

    /// Whether somebody else serves a group, and says so.
    fn has_left(&self, hosted: &Hosted) -> bool {
        let Some(told) = hosted.group().map(|group| group.told()) else {
            return true;
        };
        // Whoever follows a primary follows it before it serves.
        let next = told.primary.filter(|primary| *primary != self.parts.me);
        let serves = |next: Member| self.parts.orders.serves(hosted.id, next.server);
        next.is_some_and(|next| serves(next).unwrap_or(false))
    }

    /// Ends it as a crash does: nothing more is made durable.
    pub fn abandon(&self) {
        if let Some(watcher) = self.watcher.lock().take() {
            self.parts.server.end();
            self.parts.pool.end();
            self.parts.orders.end();
            watcher.end();
        }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.end();
        // Without a watcher the start had failed half way.
        self.parts.server.end();
        self.parts.pool.end();
        self.parts.orders.end();
    }
}

/// The groups of the cluster, which are made with it.
fn groups_of(talk: &mut Talk, paths: &Paths, cluster: &str) -> Result<Vec<GroupId>> {
    let missing = || {
        let text = format!("there is no cluster {cluster:?}: make it with `kreon cluster init`");
        Error::invalid(text)
    };
    let format = talk.read(&paths.format(), false)?.ok_or_else(missing)?;
    let format = FormatNode::decode(&format.data)?;
    if format.version != u32::from(NODE_VERSION) {
        let text = format!(
            "cluster {cluster:?} has format {}, this program knows {NODE_VERSION}",
            format.version
        );
        return Err(Error::invalid(text));
    }
    let names = talk.children(&paths.groups(), false)?.ok_or_else(missing)?;
    let numbers = names.iter().filter_map(|name| name.parse().ok());
    Ok(numbers.map(GroupId).collect())
}

impl Node {
    /// How it stands.
    pub fn status(&self) -> NodeStatus {
        crate::telling::of(&self.parts)
    }
}
