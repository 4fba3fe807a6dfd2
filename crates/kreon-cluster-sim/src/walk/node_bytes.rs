//! The configuration as the bytes of its node.

use std::sync::Arc;

use kreon_replica::machine::{Configuration, Known, Version};
use kreon_wire::{GroupConfig, KeyRange};

use super::clients::TABLE;
use crate::explore::GROUP;

/// The bytes: a flag in front of the configuration that servers and clients know.
pub(super) fn encode(config: &Configuration) -> Arc<[u8]> {
    let mut bytes = vec![u8::from(config.all_needed)];
    let node = GroupConfig {
        group: GROUP,
        term: config.term,
        loss_accepted: config.after_loss,
        min_in_sync: config.min_in_sync,
        primary: config.primary,
        in_sync: config.in_sync.to_vec(),
        members: config.servers.to_vec(),
        ranges: vec![KeyRange {
            table: TABLE.to_owned(),
            start: Vec::new(),
            end: None,
        }],
    };
    bytes.extend_from_slice(&node.encode());
    bytes.into()
}

/// What the bytes say, if they verify.
pub(super) fn decode(bytes: &[u8], version: kreon_coord::Version) -> Option<Known> {
    let (flag, node) = bytes.split_first()?;
    let node = GroupConfig::decode(node).ok()?;
    let config = Configuration {
        term: node.term,
        primary: node.primary,
        in_sync: node.in_sync.into(),
        servers: node.members.into(),
        min_in_sync: node.min_in_sync,
        after_loss: node.loss_accepted,
        all_needed: *flag != 0,
        ranges: Arc::new([]),
    };
    Some(Known {
        version: Version(version.0),
        config,
    })
}
