//! Running stores in processes of their own, by turns.

pub mod child;
pub mod job;
pub mod parent;
pub mod preset;
pub mod record;
pub mod settings;
