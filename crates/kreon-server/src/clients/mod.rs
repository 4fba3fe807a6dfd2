//! The connections of the server, as `CLIENT LIST` shows them, and what other threads tell them.

mod budget;
mod entry;
mod mailbox;
mod registry;

pub(crate) use budget::Share;
pub(crate) use entry::{ClientEntry, ClientKind};
pub(crate) use mailbox::{Call, Message};
pub(crate) use registry::{Admission, Clients};
