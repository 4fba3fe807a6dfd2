//! What a new cluster consists of: which groups there are, and which servers hold them.

mod init;
mod placement;

pub use init::{InitSettings, Layout, ServerPlace, init, plan};
