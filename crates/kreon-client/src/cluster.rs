//! A cluster as its users see it.

use std::fmt;
use std::sync::Arc;

use kreon_coord::{Command, Paths, Reply as CoordReply, ZooKeeper};
use kreon_fabric::tcp::{TcpFabric, TcpSettings};
use kreon_fabric::{Fabric, PeerId};
use kreon_wire::{
    Compared, Durability, GroupId, Member, Order, ProcessId, Role, ServerId, SplitList, Verified,
};

use crate::batch::WriteBatch;
use crate::driver::Driver;
use crate::error::{Error, ErrorKind, Result};
use crate::handle::{Handle, no_table};
use crate::options::{ClientOptions, ClusterUrl};
use crate::orders::{GroupStatus, Orders};
use crate::region::Region;
use crate::running::Running;
use crate::session::{Opener, Session};

/// A cluster. Clones are the same one; its threads end and its links close with the last of them and of what was made of
/// it.
///
/// Calls may come from any number of threads. Each ends within [`Timing::limit_us`](crate::Timing::limit_us): what was not
/// carried out by then as `Unavailable`, what may have been as `Unknown`.
#[derive(Clone)]
pub struct Cluster {
    handle: Handle,
}

impl Cluster {
    /// Connects to the cluster at `zk://host[:port],host[:port].../name`, with the usual options.
    ///
    /// # Errors
    /// As [`connect_with`](Self::connect_with).
    pub fn connect(url: &str) -> Result<Self> {
        Self::connect_with(url, ClientOptions::default())
    }

    /// Connects to a cluster: begins a session with its coordinator and reads where what lies. Links to servers are made as
    /// they are needed.
    ///
    /// # Errors
    /// `InvalidArgument` for a URL that is none; `Unavailable` if the coordinator cannot be reached or read in time;
    /// `NotFound` if it knows no such cluster.
    pub fn connect_with(url: &str, options: ClientOptions) -> Result<Self> {
        let url = ClusterUrl::parse(url)?;
        let settings = TcpSettings::new(&url.name, options.key.clone());
        let fabric = Arc::new(TcpFabric::new(settings)?);
        let session_ms = options.session_ms;
        let open: Opener = Box::new(move || {
            let session = ZooKeeper::connect(&url.coordinator, session_ms)?;
            Ok(Arc::new(session) as _)
        });
        Self::over(&url.name, fabric, open, options)
    }

    /// Connects to a cluster by way of this fabric, which has its key, and of sessions with its coordinator that `open`
    /// begins.
    ///
    /// # Errors
    /// As [`connect_with`](Self::connect_with).
    pub fn over(
        name: &str,
        fabric: Arc<dyn Fabric>,
        open: Opener,
        options: ClientOptions,
    ) -> Result<Self> {
        let member = Member {
            server: ServerId(0),
            process: random_process()?,
        };
        let me = PeerId {
            member,
            role: Role::Client,
        };
        let session = Session::new(Paths::new(name), open)?;
        let driver = Driver::new(fabric, session, me, options.timing, options.memory_bytes)?;
        let cluster = Self {
            handle: Handle::new(Running::start(driver)?, options.page_bytes),
        };
        let path = cluster.driver().session.paths().groups();
        let children = Command::Children { path, watch: false };
        match cluster.driver().session.ask(children) {
            CoordReply::Children(_) => {}
            CoordReply::Missing => {
                let text = format!("the coordinator knows no cluster {name:?}");
                return Err(Error::new(ErrorKind::NotFound, text));
            }
            reply => return Err(unanswered(&reply)),
        }
        cluster.driver().refresh()?;
        Ok(cluster)
    }

    fn driver(&self) -> &Arc<Driver> {
        self.handle.driver()
    }

    /// The table `name`, which exists. Costs nothing if it is known; otherwise the map is read anew.
    ///
    /// # Errors
    /// `NotFound` if there is no such table; `Unavailable` if the map cannot be read.
    pub fn region(&self, name: &str) -> Result<Region> {
        if self.handle.ranges(name).is_empty() {
            self.driver().refresh()?;
        }
        match self.handle.ranges(name).is_empty() {
            true => Err(no_table(name)),
            false => Ok(Region::new(self.handle.clone(), name)),
        }
    }

    /// The names of all tables, ascending, those included that are being made.
    ///
    /// # Errors
    /// `Unavailable` if the coordinator does not answer.
    pub fn tables(&self) -> Result<Vec<String>> {
        let session = &self.driver().session;
        let synced = session.ask(Command::Sync);
        if synced != CoordReply::Synced {
            return Err(unanswered(&synced));
        }
        let path = session.paths().tables();
        match session.ask(Command::Children { path, watch: false }) {
            CoordReply::Children(mut names) => {
                names.sort_unstable();
                Ok(names)
            }
            CoordReply::Missing => Ok(Vec::new()),
            reply => Err(unanswered(&reply)),
        }
    }

    /// Makes a table with a range from the first key on and one from each of `splits` on, which ascend. Groups get them in
    /// turn. Returns when all of it can be used.
    ///
    /// # Errors
    /// `Exists` if there is one with other ranges; `InvalidArgument` for a name or split that is not allowed.
    pub fn create_table(&self, name: &str, splits: &[impl AsRef<[u8]>]) -> Result<Region> {
        check_table(name)?;
        let mut list = SplitList::new();
        for split in splits {
            list.push(split.as_ref())
                .map_err(|violation| Error::refused(violation, "split key"))?;
        }
        let splits = list.splits();
        self.order(Order::CreateTable {
            table: name,
            splits,
        })?;
        self.driver().refresh()?;
        self.region(name)
    }

    /// Drops a table with all that is in it.
    ///
    /// # Errors
    /// `NotFound` if there is no such table.
    pub fn drop_table(&self, name: &str) -> Result<()> {
        check_table(name)?;
        self.order(Order::DropTable { table: name })?;
        self.driver().refresh()
    }

    /// Carries out all changes of a batch or none, if they lie in one group. A batch that may be split is carried out group
    /// by group, each part by itself: after an error other parts may have been carried out.
    ///
    /// # Errors
    /// `CrossGroup` if the keys lie in several groups and the batch may not be split: nothing was changed. Otherwise as
    /// [`Region::put`].
    pub fn write(&self, batch: WriteBatch, durability: Durability) -> Result<()> {
        batch.changes()?.write(&self.handle, durability)
    }

    /// Bytes of calls under way at this moment, their administration included.
    pub fn used_bytes(&self) -> usize {
        self.driver().used_bytes()
    }

    /// Gives an order, and waits until it is carried out; at most a minute, a day for a verification. The server that is in
    /// the master's office is found by asking. All but `HandOver` change nothing when they are given twice, so they are
    /// given again when the answer is lost.
    ///
    /// # Errors
    /// `Unavailable` if nobody takes the order in time; `Unknown` for a `HandOver` without an answer; `InvalidArgument`,
    /// `NotFound` and `Exists` if it cannot be carried out.
    pub fn order(&self, order: Order<'_>) -> Result<()> {
        Orders(&self.handle).order(order)
    }

    /// Verifies the store of the primary of a group: pages, records, what points at what. Reads all of it.
    ///
    /// # Errors
    /// As [`order`](Self::order).
    pub fn verify(&self, group: GroupId) -> Result<Verified> {
        Orders(&self.handle).verify(group)
    }

    /// Compares the copies in sync of a group with that of its primary, by digests of their blocks, while writes go on. Reads
    /// all of each. What differs is looked at again for seconds before it counts.
    ///
    /// # Errors
    /// As [`order`](Self::order). `Unavailable` also if a copy or the primary is lost meanwhile.
    pub fn compare(&self, group: GroupId) -> Result<Compared> {
        Orders(&self.handle).compare(group)
    }

    /// All groups, ascending, and how each stands at each of its members, asked at once. A server that says nothing for a
    /// second costs that second.
    ///
    /// # Errors
    /// `Unavailable` if the map cannot be read.
    pub fn groups(&self) -> Result<Vec<GroupStatus>> {
        Orders(&self.handle).groups()
    }

    /// Calls under way at this moment.
    pub fn calls(&self) -> usize {
        self.driver().state().calls()
    }

    /// How many packets of servers broke a rule so far; each cost its link.
    pub fn violations(&self) -> u64 {
        self.driver().state().violations
    }
}

impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cluster").finish_non_exhaustive()
    }
}

fn unanswered(reply: &CoordReply) -> Error {
    let text = format!("the coordinator answers {reply:?}");
    Error::new(ErrorKind::Unavailable, text)
}

/// `InvalidArgument` for what cannot be the name of a table.
fn check_table(name: &str) -> Result<()> {
    let fits = (1..=kreon_base::REGION_NAME_BYTES_MAX).contains(&name.len());
    match fits && !name.contains(char::is_control) && !name.contains('/') {
        true => Ok(()),
        false => {
            let text = format!("name of a table {name:?}: 1 to 255 bytes, no slash");
            Err(Error::new(ErrorKind::InvalidArgument, text))
        }
    }
}

fn random_process() -> Result<ProcessId> {
    let mut bytes = [0; 16];
    let flags = rustix::rand::GetRandomFlags::empty();
    match rustix::rand::getrandom(&mut bytes, flags) {
        Ok(16) => Ok(ProcessId(bytes)),
        Ok(_) => Err(Error::new(ErrorKind::Io, "too few random bytes")),
        Err(errno) => Err(kreon_base::Error::io("get random bytes", errno.into()).into()),
    }
}
