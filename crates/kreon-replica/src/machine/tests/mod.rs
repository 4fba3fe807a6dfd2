//! What single machines do, event by event.

mod of_master;
mod of_primary;
mod of_replica;
mod of_wishes;

use std::sync::Arc;

use super::{Configuration, Known, Member, ProcessId, ServerId, Term, Version};

fn member(server: u32, start: u8) -> Member {
    Member {
        server: ServerId(server),
        process: ProcessId([start; 16]),
    }
}

/// Servers 1 to 3 are to have replicas; these are in the set, the first of them in office.
fn known(term: u64, in_sync: &[Member]) -> Known {
    let config = Configuration {
        term: Term(term),
        primary: in_sync.first().copied(),
        in_sync: in_sync.into(),
        servers: (1..=3).map(ServerId).collect(),
        min_in_sync: 1,
        after_loss: false,
        loss_term: Term(0),
        all_needed: false,
        ranges: Arc::new([]),
    };
    Known {
        version: Version(10 * term),
        config,
    }
}
