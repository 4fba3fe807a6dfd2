//! A server of a test.

use std::io::IoSlice;
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use kreon_fabric::{Address, Event, Fabric, Link, Listening, PeerId, Welcome};
use kreon_wire::{
    Backup, Bounds, Compared, Control, Failure, FailureKind, Frame, Kind, Member, Operation, Order,
    Packet, PageBody, Reason, Reply, Request, Role, ScanPart, ServerId, SnapshotId, Stage,
    Standing, ValuesBody, Verified, Write, backups_body, digests_body,
};
use parking_lot::Mutex;

use crate::world::{Data, Group, World, fabric, happens};

/// A server; it ends when it is dropped.
pub struct Server {
    pub member: Member,
    listening: Option<Box<dyn Listening>>,
    address: Address,
    office: Arc<Office>,
    _fabric: Arc<dyn Fabric>,
}

struct Office {
    member: Member,
    world: Arc<World>,
    is_over: AtomicBool,
    links: Mutex<Vec<Arc<dyn Link>>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

struct Door(Arc<Office>);

impl Welcome for Door {
    fn me(&self) -> Member {
        self.0.member
    }

    fn judge(&self, _: &PeerId) -> Result<(), Reason> {
        Ok(())
    }

    fn linked(&self, link: Arc<dyn Link>) {
        let office = self.0.clone();
        office.links.lock().push(link.clone());
        let serving = office.clone();
        let thread = std::thread::spawn(move || serving.serve(&*link));
        office.threads.lock().push(thread);
    }
}

impl Server {
    pub fn start(world: &Arc<World>, member: Member) -> Self {
        let office = Arc::new(Office {
            member,
            world: world.clone(),
            is_over: AtomicBool::new(false),
            links: Mutex::default(),
            threads: Mutex::default(),
        });
        let fabric = fabric();
        let door = Arc::new(Door(office.clone()));
        let listening = fabric.listen(&Address::new("127.0.0.1:0"), door).unwrap();
        Self {
            member,
            address: listening.address(),
            listening: Some(listening),
            office,
            _fabric: fabric,
        }
    }

    pub fn address(&self) -> &Address {
        &self.address
    }

    /// How many links were made to it.
    pub fn links(&self) -> usize {
        self.office.links.lock().len()
    }

    /// Nobody listens there any more, and its links close.
    pub fn end(&mut self) {
        self.listening = None;
        self.office.is_over.store(true, Ordering::SeqCst);
        self.office
            .links
            .lock()
            .iter()
            .for_each(|link| link.close("over"));
        for thread in std::mem::take(&mut *self.office.threads.lock()) {
            thread.join().unwrap();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end();
    }
}

/// What becomes of a request.
enum Fate {
    Answer(Vec<u8>),
    Silence,
    Close,
}

fn failed(kind: FailureKind) -> Fate {
    Fate::Answer(Reply::Failed(Failure::new(kind, "so says the test")).body())
}

impl Office {
    fn serve(&self, link: &dyn Link) {
        let mut events = Vec::new();
        while !self.is_over.load(Ordering::SeqCst) {
            if link.poll(&mut events, Duration::from_millis(20)).is_err() {
                return;
            }
            for event in events.drain(..) {
                if let Event::Packet(packet) = event
                    && !self.take(link, &packet)
                {
                    link.close("the test wants it");
                }
            }
        }
    }

    /// Takes a packet; `false` if the link is to be closed.
    fn take(&self, link: &dyn Link, packet: &[u8]) -> bool {
        let faults = &self.world.faults;
        let frame = Frame::open(packet, Role::Client).unwrap();
        let to = frame.address();
        if frame.header().kind == Kind::Status {
            let standing = Standing {
                stage: Stage::Serving,
                ..Standing::absent()
            };
            let answer = Control::Standing(standing).encode(&to);
            return link.send(&[IoSlice::new(&answer)]).is_ok();
        }
        let request = Request::decode(&frame).unwrap();
        faults.requests.fetch_add(1, Ordering::SeqCst);
        while faults.hold.load(Ordering::SeqCst) && !self.is_over.load(Ordering::SeqCst) {
            std::thread::sleep(Duration::from_millis(1));
        }
        let fate = match happens(&faults.close_before) {
            true => Fate::Close,
            false if happens(&faults.ignore) => Fate::Silence,
            false => self.fate(&frame, &request),
        };
        match fate {
            Fate::Answer(_) if happens(&faults.nonsense) => {
                link.send(&Packet::reply(&to, &[99; 8]).parts()).is_ok()
            }
            Fate::Answer(body) => {
                // A client that takes nothing for long is of no use to a test.
                while link.send(&Packet::reply(&to, &body).parts()).is_err() {
                    if self.is_over.load(Ordering::SeqCst) {
                        return false;
                    }
                    std::thread::sleep(Duration::from_millis(1));
                }
                true
            }
            Fate::Silence => true,
            Fate::Close => false,
        }
    }

    fn fate(&self, frame: &Frame<'_>, request: &Request<'_>) -> Fate {
        let faults = &self.world.faults;
        if happens(&faults.refuse) {
            return failed(FailureKind::Unavailable);
        }
        if happens(&faults.busy) {
            return failed(FailureKind::Busy);
        }
        if let Request::Order(order) = request
            && order.primary_of().is_none()
        {
            return self.order(order);
        }
        let mut groups = self.world.groups.lock();
        let header = frame.header();
        let Some(group) = groups.get_mut(&header.group.0) else {
            return failed(FailureKind::Moved);
        };
        let config = &group.config;
        if config.primary != Some(self.member) || config.term != header.term {
            let moved = Failure::moved(config.term, "not the primary in this term");
            return Fate::Answer(Reply::Failed(moved).body());
        }
        self.carry_out(group, request)
    }

    fn order(&self, order: &Order<'_>) -> Fate {
        let master = self.world.master.load(Ordering::SeqCst);
        if master != self.member.server.0 {
            // Server 1 knows who it is.
            let told = if self.member.server.0 == 1 { master } else { 0 };
            let failure = Failure::not_master(ServerId(told), "not the master");
            return Fate::Answer(Reply::Failed(failure).body());
        }
        self.world.ordered.lock().push(format!("{order:?}"));
        Fate::Answer(Reply::Done.body())
    }

    fn carry_out(&self, group: &mut Group, request: &Request<'_>) -> Fate {
        let reply = match request {
            Request::Write(write) => return self.write(group, write),
            Request::Get {
                table,
                key,
                snapshot,
            } => match (holds(group, table, key), at(group, *snapshot)) {
                (false, _) => return failed(FailureKind::Moved),
                (_, None) => return failed(FailureKind::Closed),
                (true, Some(data)) => Reply::Value(value(data, table, key)).body(),
            },
            Request::GetMany { table, keys, .. } => {
                let mut values = ValuesBody::new();
                for key in keys.iter() {
                    if !holds(group, table, key) {
                        return failed(FailureKind::Moved);
                    }
                    if values.push(value(&group.data, table, key)).is_err() {
                        return failed(FailureKind::TooLarge);
                    }
                }
                values.finish()
            }
            Request::Scan(part) => return self.page(group, part),
            Request::Snapshot => Reply::Snapshot(SnapshotId(self.snapshot(group))).body(),
            Request::Release { snapshot } => {
                group.snapshots.remove(&snapshot.0);
                self.world.released.lock().insert(snapshot.0);
                Reply::Done.body()
            }
            Request::Order(Order::Verify { .. }) => Reply::Verified(Verified {
                problems: 0,
                pages: 7,
                records: 9,
            })
            .body(),
            Request::Order(Order::Compare { .. }) => Reply::Compared(Compared {
                copies: 2,
                blocks: 8,
                differing: 1,
                unsettled: 0,
                worst: ServerId(2),
            })
            .body(),
            Request::Order(_) => Reply::Done.body(),
            Request::Backups => backups_body(&[Backup {
                member: self.member,
                is_counted: false,
                has_ended: false,
                lag_bytes: 1,
                durable_lag_bytes: 2,
                copied_bytes: 3,
                to_copy_bytes: 4,
            }]),
            Request::Digests { blocks, .. } => digests_body(&vec![0; *blocks as usize]),
        };
        Fate::Answer(reply)
    }

    fn snapshot(&self, group: &mut Group) -> u64 {
        let number = self.world.last_snapshot.fetch_add(1, Ordering::SeqCst) + 1;
        group.snapshots.insert(number, group.data.clone());
        number
    }

    fn write(&self, group: &mut Group, write: &Write<'_>) -> Fate {
        let tables: Vec<_> = write.tables.iter().collect();
        let (mut keys, mut is_here) = (Vec::new(), Vec::new());
        for operation in write.operations.iter() {
            let table = tables[usize::from(operation.table())];
            let key = match operation {
                Operation::Put { key, .. } | Operation::Delete { key, .. } => key.to_vec(),
                Operation::DeleteRange { bounds, .. } => key_of(bounds.start).to_vec(),
            };
            is_here.push(match operation {
                Operation::DeleteRange { bounds, .. } => holds_all(group, table, &bounds),
                _ => holds(group, table, &key),
            });
            keys.push(key);
        }
        match is_here.iter().filter(|is_here| **is_here).count() {
            0 => return failed(FailureKind::Moved),
            count if count < keys.len() => return failed(FailureKind::CrossGroup),
            _ => {}
        }
        for operation in write.operations.iter() {
            let table = tables[usize::from(operation.table())].to_owned();
            match operation {
                Operation::Put { key, value, .. } => {
                    group.data.insert((table, key.to_vec()), value.to_vec());
                }
                Operation::Delete { key, .. } => {
                    group.data.remove(&(table, key.to_vec()));
                }
                Operation::DeleteRange { bounds, .. } => {
                    group
                        .data
                        .retain(|(of, key), _| *of != table || !within(&bounds, key));
                }
            }
        }
        group.appended.push(keys);
        let faults = &self.world.faults;
        match happens(&faults.close_after_append) {
            true => Fate::Close,
            false if happens(&faults.lose_answers) => Fate::Silence,
            false if happens(&faults.unknown) => failed(FailureKind::Unknown),
            false => Fate::Answer(Reply::Done.body()),
        }
    }

    fn page(&self, group: &mut Group, part: &ScanPart<'_>) -> Fate {
        let ranges = group
            .config
            .ranges
            .iter()
            .filter(|range| range.table == part.table);
        if !ranges
            .into_iter()
            .any(|range| range.holds(key_of(part.bounds.start)))
        {
            return failed(FailureKind::Moved);
        }
        let Some(data) = at(group, part.snapshot) else {
            return failed(FailureKind::Closed);
        };
        let entries = data
            .iter()
            .filter(|((table, key), _)| table == part.table && within(&part.bounds, key));
        let mut entries: Vec<_> = entries.collect();
        if part.is_reverse {
            entries.reverse();
        }
        let (mut page, mut is_last) = (PageBody::new(), true);
        for ((_, key), value) in entries {
            let value = if part.keys_only { &[][..] } else { value };
            let is_full = page.len() >= part.entries_max as usize
                || page.data_bytes() + key.len() + value.len() > part.bytes_max as usize;
            if is_full && !page.is_empty() {
                is_last = false;
                break;
            }
            page.push(key, value).unwrap();
        }
        let snapshot = match (is_last, part.snapshot.0) {
            (true, _) => 0,
            (false, 0) => self.snapshot(group),
            (false, snapshot) => snapshot,
        };
        Fate::Answer(page.finish(SnapshotId(snapshot)))
    }
}

fn holds(group: &Group, table: &str, key: &[u8]) -> bool {
    group.config.range_of(table, key).is_some()
}

/// Whether one range has all keys within these bounds.
fn holds_all(group: &Group, table: &str, bounds: &Bounds<'_>) -> bool {
    let range = group.config.range_of(table, key_of(bounds.start));
    range.is_some_and(|range| match (&range.end, bounds.end) {
        (None, _) => true,
        (Some(_), Bound::Unbounded) => false,
        (Some(end), Bound::Included(key)) => key < end.as_slice(),
        (Some(end), Bound::Excluded(key)) => key <= end.as_slice(),
    })
}

fn at(group: &Group, snapshot: SnapshotId) -> Option<&Data> {
    match snapshot.0 {
        0 => Some(&group.data),
        snapshot => group.snapshots.get(&snapshot),
    }
}

fn value<'a>(data: &'a Data, table: &str, key: &[u8]) -> Option<&'a [u8]> {
    data.get(&(table.to_owned(), key.to_vec()))
        .map(Vec::as_slice)
}

fn key_of(edge: Bound<&[u8]>) -> &[u8] {
    match edge {
        Bound::Unbounded => &[],
        Bound::Included(key) | Bound::Excluded(key) => key,
    }
}

fn within(bounds: &Bounds<'_>, key: &[u8]) -> bool {
    RangeBounds::<[u8]>::contains(&(bounds.start, bounds.end), key)
}
