//! A [`Coordinator`](crate::Coordinator) on Apache ZooKeeper 3.9.
//!
//! One thread of its own has the session, on an executor that nobody else sees. (The client crate adds one thread for
//! all timers and sockets of the process, and short ones that look up names of hosts.)
//!
//! # What is promised
//! - **Order**: what a session asks is carried out in that order, also across connections: ZooKeeper refuses what an
//!   earlier connection of a session left behind somewhere. So [`Command::Sync`](crate::Command::Sync) and a read after a
//!   [`Reply::Unknown`](crate::Reply::Unknown) of the same session tell what became of the write.
//! - **Nothing is sent twice.** What was sent when a connection ended is `Unknown`. What is asked without a connection
//!   waits for the next one; if it is not answered in time it is `Unknown`, too, and may still be carried out.
//! - **Each answer comes within the time of the session**, as granted, or the call is `Unknown`.
//! - **A server that answers pings and no call** for three times the time of the session is left: the session is taken up at
//!   another one, or ends. Else it would keep the session alive for a process that learns nothing any more.
//! - **`Sync` is a write** (it checks that the root exists): it is answered when a majority has it. ZooKeeper's own
//!   `sync` asks the leader only, and one that was frozen and deposed answers it from its old state until it notices.
//! - **Only ZooKeeper ends a session.** Without any server in reach the session may be over or not; it is taken up again
//!   as soon as a server answers, and that one knows. So [`Event::Expired`](crate::Event::Expired) comes at once after
//!   the first contact, and then the ephemeral nodes are gone.
//! - **A watch loses no change**: it is set with the read, or before it, and set again on each connection by way of the
//!   last write that the client saw. If the session had to be taken up again, all watches end with
//!   [`Event::Changed`](crate::Event::Changed). It may be told without a change.
//! - A write of a session that is over can still be under way if a server was frozen: who begins a new session
//!   learns by `Sync` what is, not what will never come. Only a write that raises the version keeps it out.
//!
//! # What the client crate does (`zookeeper-client` 0.11.2, read in its source)
//! - On the end of a connection it answers all that it had sent with an error and sends none of it again, but for
//!   authentication (`session/depot.rs`, `Depot::error`). What it had not taken from its queue it sends on the next
//!   connection.
//! - It says that a connection is dead after 2/5 of the session's time without a byte, with pings every 3/20, and that the
//!   *session* has expired after 7/5 (`session/mod.rs`, `reset_timeout`, `start`): a guess of its clock, with the same
//!   name as what a server says. Here it is a reason to ask: see above.
//! - It sets one-shot watches again by `SetWatches` with the last `zxid` of a reply. **Persistent watches it loses**
//!   (`session/watch.rs`, `resend_watches`: `index.max(index)`), so none are used.
//! - A read with a watch of a node that does not exist leaves no watch: `exists` is asked first, in the same breath.
//! - A dropped client closes its session.

mod reply;
mod request;
mod session;
mod shared;
#[cfg(test)]
mod stuck;
mod thread;
mod watches;

pub use session::ZooKeeper;
