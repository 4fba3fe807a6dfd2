//! The connections of the server, as `CLIENT LIST` shows them, and what other threads tell them.

mod entry;
mod mailbox;
mod registry;

pub(crate) use entry::{ClientEntry, ClientKind};
pub(crate) use mailbox::{Call, Mailbox, Message};
pub(crate) use registry::{Admission, Clients};
