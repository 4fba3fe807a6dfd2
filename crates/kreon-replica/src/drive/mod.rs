//! The machines on real threads, sockets and files.
//!
//! One [`Server`] per process has everything that its groups share; one [`Group`] per group owns the machines of that
//! group, feeds them and carries out what they want done.
//!
//! - [`Links`]: connections to other servers, one for control messages and one for streams each
//! - [`Asking`]: the session with the coordinator, with the candidacy for the office of the master; `answers`: its replies as the
//!   machines see them; `directory`: what it tells of servers
//! - `mastering`: the master, if this server is it
//! - `group`: the machines of one group under a lock; `of_replica`, `of_primary`: what they want done; `letters`: control
//!   messages as events; `streams`: packets of streams and what is answered
//! - `worker`: what waits for the file, in order; `equalising`, `office`, `joining`: what it does there
//! - [`Host`]: the server above, which takes requests of clients; [`Replies`]: its replies, in the order of the log
//! - [`Told`]: how a group stands, for the server above
//! - [`Volume`]: where a group's file is
//!
//! Who has news of a group locks its machines and carries out their actions itself: no thread is woken for a beat, an
//! answer or an acknowledgement. So an action never waits for a device or for another server; what does is done by the
//! group's worker. Locks are taken in this order: a follower's, the machines', those of the mirror, the links and the
//! session.

mod answers;
mod asking;
mod clock;
mod directory;
mod equalising;
mod following;
mod group;
mod host;
mod joining;
mod letters;
mod links;
mod mastering;
mod of_primary;
mod of_replica;
mod office;
mod own;
mod replies;
mod server;
mod streams;
#[cfg(test)]
mod tests;
mod told;
mod volume;
mod worker;

pub use self::answers::answer;
pub use self::asking::{Asking, Begin};
pub use self::clock::set_clock_percent;
pub use self::group::{Group, GroupSettings, Moments};
pub use self::host::{Host, Serving};
pub use self::links::{Clients, Links, LinksSettings};
pub use self::replies::Replies;
pub use self::server::{Server, ServerSettings};
pub use self::told::Told;
pub use self::volume::{FileVolume, Volume};
