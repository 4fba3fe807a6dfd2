//! Who is primary of what, as ZooKeeper says.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use kreon_coord::{Command, Coordinator, Paths, Reply, ZooKeeper};
use kreon_node::Talk;
use kreon_wire::{GroupConfig, GroupId, Term};
use parking_lot::Mutex;

/// How often it looks.
const EVERY: Duration = Duration::from_millis(100);

/// What it saw.
#[derive(Default)]
struct Seen {
    groups: Vec<GroupConfig>,
    /// When all of them were read last.
    at: Option<Instant>,
    /// Terms that had a primary.
    terms: BTreeSet<(GroupId, Term)>,
}

/// Looks until it is dropped.
pub struct View {
    seen: Arc<Mutex<Seen>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl View {
    /// Of the groups 1 to `groups` of a cluster.
    pub fn start(cluster: &str, zookeepers: String, groups: u32) -> Self {
        let seen = Arc::new(Mutex::new(Seen::default()));
        let stop = Arc::new(AtomicBool::new(false));
        let (shared, over, paths) = (Arc::clone(&seen), Arc::clone(&stop), Paths::new(cluster));
        let thread = std::thread::spawn(move || {
            let mut talk = None;
            while !over.load(Ordering::Relaxed) {
                if talk.is_none() {
                    talk = session(&zookeepers);
                }
                let read = talk.as_mut().and_then(|talk| read(talk, &paths, groups));
                match read {
                    Some(groups) => shared.lock().take(groups),
                    None => talk = None,
                }
                std::thread::sleep(EVERY);
            }
        });
        Self {
            seen,
            stop,
            thread: Some(thread),
        }
    }

    /// The groups as they were read last; none if that is a second ago.
    pub fn groups(&self) -> Vec<GroupConfig> {
        let seen = self.seen.lock();
        match seen.at.is_some_and(|at| at.elapsed().as_secs() < 1) {
            true => seen.groups.clone(),
            false => Vec::new(),
        }
    }

    /// The groups as they were read last, however long ago.
    pub fn last_groups(&self) -> Vec<GroupConfig> {
        self.seen.lock().groups.clone()
    }

    /// Terms with a primary beyond the first of each group: failovers.
    pub fn failovers(&self) -> u64 {
        let seen = self.seen.lock();
        let groups: BTreeSet<GroupId> = seen.terms.iter().map(|(group, _)| *group).collect();
        (seen.terms.len() - groups.len()) as u64
    }

    /// Waits until each group has a primary and all its members in the set.
    ///
    /// # Errors
    /// What is missing after `patience`.
    pub fn wait_until_whole(&self, patience: Duration) -> Result<(), String> {
        let begun = Instant::now();
        loop {
            let groups = self.groups();
            let lacking = groups.iter().find(|group| !is_whole(group));
            match (groups.is_empty(), lacking) {
                (false, None) => return Ok(()),
                (_, lacking) if begun.elapsed() > patience => {
                    return Err(format!(
                        "not whole {} s after everything works again: {lacking:?}",
                        patience.as_secs()
                    ));
                }
                _ => std::thread::sleep(EVERY),
            }
        }
    }
}

impl Seen {
    fn take(&mut self, groups: Vec<GroupConfig>) {
        let terms = groups.iter().filter(|group| group.primary.is_some());
        self.terms
            .extend(terms.map(|group| (group.group, group.term)));
        self.groups = groups;
        self.at = Some(Instant::now());
    }
}

impl Drop for View {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn is_whole(group: &GroupConfig) -> bool {
    group.primary.is_some() && group.in_sync.len() == group.members.len()
}

fn session(zookeepers: &str) -> Option<Talk> {
    let session = ZooKeeper::connect(zookeepers, 2000).ok()?;
    Some(Talk::new(Arc::new(session) as Arc<dyn Coordinator>))
}

fn read(talk: &mut Talk, paths: &Paths, groups: u32) -> Option<Vec<GroupConfig>> {
    let read = |group: u32| {
        let command = Command::Get {
            path: paths.group(group),
            watch: false,
        };
        match talk.call(command).ok()? {
            Reply::Node(node) => GroupConfig::decode(&node.data).ok(),
            _ => None,
        }
    };
    (1..=groups).map(read).collect()
}
