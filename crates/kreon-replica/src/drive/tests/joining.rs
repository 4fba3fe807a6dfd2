//! Joiners: which files they write, and messages that are lost.

use std::path::Path;
use std::sync::Arc;

use kreon_base::{Lsn, Result};
use kreon_device::Device;
use kreon_sync::{AtomicU64, Mutex, Ordering};
use kreon_wire::{Control, GroupId, Reason};

use super::super::{FileVolume, Volume};
use super::cluster::{Cluster, LIMIT, Node, SILENCE, options, timing, wait_until};
use super::volume::SimVolume;
use crate::machine::primary::Event;
use crate::machine::{Stamp, Timing};

const GROUP: GroupId = GroupId(1);
const OTHER: GroupId = GroupId(2);

/// Names of files of stores in a folder when a copy begins, and when the old one is to go.
#[derive(Default)]
struct Names {
    at_begin: Mutex<Vec<String>>,
    at_settling: Mutex<Vec<String>>,
    settled: AtomicU64,
}

struct Watched {
    volume: FileVolume,
    names: Arc<Names>,
}

impl Watched {
    fn names(&self) -> Vec<String> {
        stores_in(self.volume.path().parent().unwrap())
    }
}

impl Volume for Watched {
    fn open(&self) -> Result<Arc<dyn Device>> {
        self.volume.open()
    }

    fn begin_resync(&self, needed_bytes: u64, is_trusted: bool) -> Result<Arc<dyn Device>> {
        let device = self.volume.begin_resync(needed_bytes, is_trusted)?;
        *self.names.at_begin.lock() = self.names();
        Ok(device)
    }

    fn settle(&self, device: &Arc<dyn Device>) -> Result<()> {
        *self.names.at_settling.lock() = self.names();
        self.volume.settle(device)?;
        self.names.settled.fetch_add(1, Ordering::Release);
        Ok(())
    }

    fn seen(&self) -> Result<Option<Stamp>> {
        self.volume.seen()
    }

    fn keep_seen(&self, stamp: Stamp) -> Result<()> {
        self.volume.keep_seen(stamp)
    }
}

fn stores_in(folder: &Path) -> Vec<String> {
    let names = std::fs::read_dir(folder).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.filter(|name| !name.contains("seen")).collect();
    names.sort_unstable();
    names
}

#[test]
fn a_joiner_writes_a_second_file_and_the_old_one_goes_when_it_is_in_the_set() {
    let cluster = Cluster::new(&[GROUP], timing());
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let names: [Arc<Names>; 2] = Default::default();
    let start = |server: u32| {
        let index = server as usize - 1;
        let volume = Watched {
            volume: FileVolume::new(folders[index].path().join("group-1")),
            names: Arc::clone(&names[index]),
        };
        cluster.start(server, vec![(GROUP, Arc::new(volume))], options())
    };
    let mut nodes = vec![start(1), start(2)];
    cluster.make(GROUP, &[&nodes[0], &nodes[1]], 1);
    cluster.await_set(GROUP, &[&nodes[0], &nodes[1]]);
    let first = usize::from(!nodes[0].serves(GROUP));
    assert!(nodes[first].put(GROUP, 0..200));
    assert_eq!(stores_in(folders[first].path()), ["group-1.1"]);
    // The primary goes, and comes back with a file of its own.
    let gone = nodes.remove(first);
    let server = gone.me.server.0;
    drop(gone);
    let other = nodes.remove(0);
    wait_until("it serves", || other.serves(GROUP));
    assert!(other.put(GROUP, 200..300));
    let back = start(server);
    cluster.await_set(GROUP, &[&back, &other]);
    let names = &names[first];
    wait_until("the old file goes", || {
        names.settled.load(Ordering::Acquire) > 0
    });
    let both = ["group-1.1", "group-1.2"];
    assert_eq!(*names.at_begin.lock(), both);
    assert_eq!(*names.at_settling.lock(), both);
    assert_eq!(stores_in(folders[first].path()), ["group-1.2"]);
    // It is the one that is opened from now on.
    drop(other);
    wait_until("it serves again", || back.serves(GROUP));
    assert!(back.has(GROUP, 0..300));
}

/// Two servers with two groups, each with some keys.
fn two_groups(cluster: &Cluster) -> [Node; 2] {
    let nodes = [1, 2].map(|server| {
        let groups = [GROUP, OTHER].map(|id| (id, Arc::new(SimVolume::new()) as Arc<dyn Volume>));
        cluster.start(server, groups.into(), options())
    });
    for id in [GROUP, OTHER] {
        cluster.make(id, &[&nodes[0], &nodes[1]], 1);
        cluster.await_set(id, &[&nodes[0], &nodes[1]]);
        assert!(roles(&nodes, id).0.put(id, 0..50));
    }
    nodes
}

/// The primary of a group, and the other one.
fn roles(nodes: &[Node; 2], id: GroupId) -> (&Node, &Node) {
    match nodes[0].serves(id) {
        true => (&nodes[0], &nodes[1]),
        false => (&nodes[1], &nodes[0]),
    }
}

fn remove(from: &Node, id: GroupId, node: &Node) {
    let group = from.group(id);
    group.primary(&mut group.core(), Event::Failed(node.me));
}

#[test]
fn a_member_that_lost_the_word_of_its_removal_hears_it_again_and_other_groups_go_on() {
    let cluster = Cluster::new(&[GROUP, OTHER], timing());
    let nodes = two_groups(&cluster);
    let before = cluster.known(OTHER);
    let is_word = |message: &Control| matches!(message, Control::Refused(refused) if refused.reason == Reason::NotInSet);
    let (primary, member) = roles(&nodes, GROUP);
    member.filter.lose(is_word);
    remove(primary, GROUP, member);
    wait_until("the word is lost", || {
        member.filter.dropped.load(Ordering::Relaxed) > 0
    });
    assert_eq!(cluster.known(GROUP).config.in_sync[..], [primary.me]);
    member.filter.let_pass();
    // So it joins anew.
    cluster.await_set(GROUP, &[&nodes[0], &nodes[1]]);
    assert!(primary.put(GROUP, 50..60));
    assert!(roles(&nodes, OTHER).0.put(OTHER, 50..60));
    assert_eq!(cluster.known(OTHER), before, "the same link, another group");
}

/// As that of a candidate, which drops it: nothing tells the joiner when the office begins.
#[test]
fn a_joiner_whose_question_was_dropped_asks_again_before_it_looks_again() {
    let timing = Timing {
        silence_us: 100 * LIMIT.as_micros() as u64,
        ..timing()
    };
    let cluster = Cluster::new(&[GROUP, OTHER], timing);
    let nodes = two_groups(&cluster);
    let (primary, member) = roles(&nodes, GROUP);
    let is_question = |message: &Control| matches!(message, Control::Standing(_));
    primary.filter.lose(is_question);
    remove(primary, GROUP, member);
    wait_until("the question is lost", || {
        primary.filter.dropped.load(Ordering::Relaxed) > 0
    });
    primary.filter.let_pass();
    cluster.await_set(GROUP, &[&nodes[0], &nodes[1]]);
}

#[test]
fn a_joiner_whose_answer_was_lost_is_asked_anew() {
    let cluster = Cluster::new(&[GROUP, OTHER], timing());
    let nodes = two_groups(&cluster);
    let (primary, member) = roles(&nodes, GROUP);
    let is_answer = |message: &Control| matches!(message, Control::Attached { .. });
    primary.filter.lose(is_answer);
    remove(primary, GROUP, member);
    wait_until("the answer is lost", || {
        primary.filter.dropped.load(Ordering::Relaxed) > 0
    });
    primary.filter.let_pass();
    cluster.await_set(GROUP, &[&nodes[0], &nodes[1]]);
}

#[test]
fn a_checkpoint_without_log_shows_the_machine_that_a_member_moves() {
    let cluster = Cluster::new(&[GROUP], timing());
    let nodes = [1, 2].map(|server| {
        let volume: Arc<dyn Volume> = Arc::new(SimVolume::new());
        cluster.start(server, vec![(GROUP, volume)], options())
    });
    cluster.make(GROUP, &[&nodes[0], &nodes[1]], 2);
    cluster.await_set(GROUP, &[&nodes[0], &nodes[1]]);
    let primary = nodes.iter().find(|node| node.serves(GROUP)).unwrap();
    assert!(primary.put(GROUP, 0..20));
    primary.sync(GROUP);
    let moved_at = || {
        let core = primary.group(GROUP).core();
        core.office.as_ref().unwrap().machine.peers()[0].moved_at
    };
    let (group, store) = (primary.group(GROUP), primary.group(GROUP).store().unwrap());
    // The last answers to the log and its flush have been sampled. From here on the member lags.
    std::thread::sleep(SILENCE / 4);
    let beyond = store.engine().log_tail().0 + 1;
    group.primary(&mut group.core(), Event::Appended(Lsn(beyond)));
    let before = moved_at();
    std::thread::sleep(SILENCE / 8);
    assert_eq!(moved_at(), before, "nothing is under way");
    store.engine().checkpoint().unwrap();
    wait_until("pages have moved it", || moved_at() > before);
}
