//! A group as clients see it.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock, Weak};

use kreon_base::{Lsn, PAGE_BYTES};
use kreon_replica::drive::{FileVolume, Group, Host, Serving};
use kreon_replica::machine::primary::{Met, ReadId};
use kreon_replica::machine::{Known, Term};
use kreon_replica::mirror::{MemberStanding, Mirror};
use kreon_sync::{AtomicBool, AtomicU64, Mutex, Ordering, RwLock};
use kreon_wire::{Backup, FailureKind, GroupId, Reply};

use super::office::Office;
use super::snapshots::Snapshots;
use super::waiting::{At, Wait, Waiting};
use crate::client::Due;

/// A group that this server holds, as clients see it: the store while this server is the primary, and what waits.
///
/// Locks: the machines of the group call with their lock held, so whoever has one of the locks here calls nothing of the
/// group.
pub struct Hosted {
    pub id: GroupId,
    group: OnceLock<Weak<Group>>,
    office: RwLock<Option<Arc<Office>>>,
    waiting: Mutex<Waiting>,
    pub snapshots: Snapshots,
    last_read: AtomicU64,
    refused: [AtomicU64; FailureKind::ALL.len()],
    is_verifying: Arc<AtomicBool>,
    is_digesting: Arc<AtomicBool>,
    /// Where the files are.
    volume: FileVolume,
}

/// The store or the file of a group is being read by whoever has this.
pub struct Turn(Arc<AtomicBool>);

impl Turn {
    fn take(is_taken: &Arc<AtomicBool>) -> Option<Self> {
        let was_taken = is_taken.swap(true, Ordering::AcqRel);
        (!was_taken).then(|| Self(Arc::clone(is_taken)))
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

impl Hosted {
    pub fn new(id: GroupId, volume: FileVolume) -> Arc<Self> {
        Arc::new(Self {
            id,
            group: OnceLock::new(),
            office: RwLock::new(None),
            waiting: Mutex::default(),
            snapshots: Snapshots::default(),
            last_read: AtomicU64::new(0),
            refused: Default::default(),
            is_verifying: Arc::default(),
            is_digesting: Arc::default(),
            volume,
        })
    }

    /// The replica that it is of.
    pub fn set_group(&self, group: &Arc<Group>) {
        let _ = self.group.set(Arc::downgrade(group));
    }

    pub fn group(&self) -> Option<Arc<Group>> {
        self.group.get().and_then(Weak::upgrade)
    }

    /// The office, while this server is the primary.
    pub fn office(&self) -> Option<Arc<Office>> {
        self.office.read().clone()
    }

    /// What sends the log of an office; none if that is over.
    pub fn mirror(&self, office: &Office) -> Option<Arc<Mirror>> {
        if let Some(mirror) = office.mirror.get() {
            return mirror.upgrade();
        }
        let store = self.group()?.store()?;
        let mirror = store.mirror();
        if mirror.term() != office.term {
            return None;
        }
        let _ = office.mirror.set(Arc::downgrade(mirror));
        Some(Arc::clone(mirror))
    }

    /// The answer to a write of the office that ends at `end`.
    pub fn await_log(&self, office: &Office, (end, wait): (Lsn, Wait), due: Due) {
        let put = self.waiting.lock().put(office.term, (end, wait), due);
        match put {
            Some(At::Once(due)) => due.reply(&Reply::Done),
            Some(At::Over(due)) => {
                self.refuse(due, FailureKind::Unknown, "the primary has changed")
            }
            // Nobody else answers, so nothing but a flush makes it safe, and nobody asks for that.
            None if wait == Wait::Durable || office.holds().is_sole => {
                if let Some(group) = self.group() {
                    group.sync(end);
                }
            }
            None => {}
        }
    }

    /// The answer to a read of the office: it leaves when this server has proven to be in office since, and what the read has
    /// met cannot vanish.
    pub fn await_read(&self, office: &Office, met: Option<Met>, mut due: Due, body: Vec<u8>) {
        due.hold(body.len());
        let read = ReadId(self.last_read.fetch_add(1, Ordering::Relaxed) + 1);
        let is_over = self.waiting.lock().put_read(office.term, read, due, body);
        if let Some(due) = is_over {
            return self.move_on(due);
        }
        match self.group() {
            Some(group) => group.read_of(office.term, read, met),
            None => self.drop_read(read),
        }
    }

    /// Says where the client is to look: not here.
    pub fn move_on(&self, due: Due) {
        self.count(FailureKind::Moved);
        due.moved(self.term(), "this server is not the primary");
    }

    /// The same for keys that the group has not.
    pub fn misplaced(&self, office: &Office, due: Due) {
        self.count(FailureKind::Moved);
        due.moved(office.term, "the group does not have these keys");
    }

    pub fn refuse(&self, due: Due, kind: FailureKind, text: &str) {
        self.count(kind);
        due.fail(kind, text);
    }

    fn count(&self, kind: FailureKind) {
        let index = FailureKind::ALL.iter().position(|other| *other == kind);
        if let Some(count) = index.and_then(|index| self.refused.get(index)) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The term that is known here.
    fn term(&self) -> Term {
        self.group().map_or(Term(0), |group| group.promised())
    }

    /// The right to verify the store; none while another one has it.
    pub fn begin_verifying(&self) -> Option<Turn> {
        Turn::take(&self.is_verifying)
    }

    /// The right to digest the file; none while another one has it.
    pub fn begin_digesting(&self) -> Option<Turn> {
        Turn::take(&self.is_digesting)
    }

    /// The file that was opened last; none before.
    pub fn file(&self) -> Option<PathBuf> {
        self.volume.file()
    }

    /// The backups and joiners with what is known of them beside, if this server is the primary.
    pub fn backups(&self) -> Vec<(Backup, MemberStanding, Lsn)> {
        let (Some(office), Some(group)) = (self.office(), self.group()) else {
            return Vec::new();
        };
        let told = group.told();
        let in_use = || {
            let occupied = office.engine.occupied().unwrap_or_default();
            let pages = occupied
                .pages
                .iter()
                .map(|(_, count)| count * PAGE_BYTES as u64);
            let log = occupied.log.iter().map(|log| log.bytes);
            pages.chain(log).sum::<u64>()
        };
        let backup = |(standing, landed): (MemberStanding, Lsn)| {
            let copied_bytes = standing.traffic.copies_bytes;
            let durable = standing.progress.log_durable;
            let backup = Backup {
                member: standing.member,
                is_counted: standing.is_counted,
                has_ended: standing.ended.is_some(),
                lag_bytes: told.tail.0.saturating_sub(landed.0),
                durable_lag_bytes: told.tail.0.saturating_sub(durable.0),
                copied_bytes,
                to_copy_bytes: match standing.is_counted {
                    true => 0,
                    false => copied_bytes.max(in_use() + standing.owed_bytes),
                },
            };
            (backup, standing, landed)
        };
        let mut backups: Vec<_> = told.members.into_iter().map(backup).collect();
        backups.sort_by_key(|(backup, ..)| backup.member);
        backups
    }

    /// Requests that were refused, by kind.
    pub fn refusals(&self) -> Vec<(FailureKind, u64)> {
        let counts = self
            .refused
            .iter()
            .map(|count| count.load(Ordering::Relaxed));
        let all = FailureKind::ALL.iter().copied().zip(counts);
        all.filter(|(_, count)| *count > 0).collect()
    }

    /// How many writes and reads wait.
    pub fn waiting(&self) -> (usize, usize) {
        self.waiting.lock().counts()
    }
}

impl Host for Hosted {
    fn serve(&self, serving: Serving) {
        let office = Arc::new(Office::new(serving));
        self.waiting.lock().begin(office.term);
        *self.office.write() = Some(office);
    }

    fn configured(&self, known: &Known) {
        if let Some(office) = self.office() {
            office.configured(known);
        }
    }

    fn take_writes(&self, takes: bool) {
        if let Some(office) = self.office() {
            office.set_takes_writes(takes);
        }
    }

    fn acknowledge(&self, upto: Lsn) {
        let mut released = Vec::new();
        self.waiting.lock().acknowledge(upto, &mut released);
        let done = Reply::Done.body();
        released.into_iter().for_each(|due| due.answer(&done));
    }

    fn durable(&self, upto: Lsn) {
        let mut released = Vec::new();
        self.waiting.lock().durable(upto, &mut released);
        let done = Reply::Done.body();
        released.into_iter().for_each(|due| due.answer(&done));
    }

    fn show(&self, read: ReadId) {
        let shown = self.waiting.lock().take_read(read);
        if let Some((due, body)) = shown {
            due.answer(&body);
        }
    }

    fn drop_read(&self, read: ReadId) {
        let dropped = self.waiting.lock().take_read(read);
        if let Some((due, _)) = dropped {
            // The machines are locked: which term they know is not asked.
            self.count(FailureKind::Moved);
            due.moved(Term(0), "this server is not the primary any more");
        }
    }

    fn leave_office(&self) {
        *self.office.write() = None;
        let (writes, reads) = self.waiting.lock().end();
        self.snapshots.end();
        for due in writes {
            self.refuse(due, FailureKind::Unknown, "the primary has changed");
        }
        for due in reads {
            self.count(FailureKind::Moved);
            due.moved(Term(0), "this server is not the primary any more");
        }
    }
}
