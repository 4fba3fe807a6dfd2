//! The configuration as the coordinator's node has it.

use kreon_wire::{GroupConfig, GroupId, KeyRange, Violation};

use super::{Configuration, Known, Version};

impl Configuration {
    /// The configuration as servers send it to each other, and as the node of `group` holds it.
    ///
    /// # Errors
    /// The ranges are not those of a node, or something contradicts itself: no node can hold it.
    pub fn to_node(&self, group: GroupId) -> Result<GroupConfig, Violation> {
        let node = GroupConfig {
            group,
            term: self.term,
            loss_accepted: self.after_loss,
            loss_term: self.loss_term,
            all_needed: self.all_needed,
            min_in_sync: self.min_in_sync,
            primary: self.primary,
            in_sync: self.in_sync.to_vec(),
            members: self.servers.to_vec(),
            ranges: KeyRange::decode_all(&self.ranges)?,
        };
        node.check().map(|()| node)
    }

    /// What a node says.
    pub fn of_node(node: GroupConfig) -> Self {
        Self {
            term: node.term,
            primary: node.primary,
            in_sync: node.in_sync.into(),
            servers: node.members.into(),
            min_in_sync: node.min_in_sync,
            after_loss: node.loss_accepted,
            loss_term: node.loss_term,
            all_needed: node.all_needed,
            ranges: KeyRange::encode_all(&node.ranges).into(),
        }
    }
}

impl Known {
    /// What the bytes of the node of `group` say, which has this version.
    ///
    /// # Errors
    /// They are not right, or another group's.
    pub fn of_bytes(group: GroupId, bytes: &[u8], version: Version) -> Result<Self, Violation> {
        let node = GroupConfig::decode(bytes)?;
        match node.group == group {
            true => Ok(Self {
                version,
                config: Configuration::of_node(node),
            }),
            false => Err(Violation::OtherGroup),
        }
    }
}

#[cfg(test)]
mod tests {
    use kreon_wire::{Member, ProcessId, ServerId, Term};

    use super::*;

    fn configuration() -> Configuration {
        let member = |server: u32| Member {
            server: ServerId(server),
            process: ProcessId([server as u8; 16]),
        };
        let range = KeyRange {
            table: "cities".to_owned(),
            start: b"a".to_vec(),
            end: None,
        };
        Configuration {
            term: Term(7),
            primary: Some(member(2)),
            in_sync: [member(1), member(2)].into(),
            servers: [1, 2, 3].map(ServerId).into(),
            min_in_sync: 2,
            after_loss: false,
            loss_term: Term(3),
            all_needed: true,
            ranges: KeyRange::encode_all(&[range]).into(),
        }
    }

    #[test]
    fn a_node_says_all_of_a_configuration() {
        let config = configuration();
        let bytes = config.to_node(GroupId(4)).unwrap().encode();
        let known = Known::of_bytes(GroupId(4), &bytes, Version(3)).unwrap();
        let version = Version(3);
        assert_eq!(known, Known { version, config });
        assert_eq!(
            Known::of_bytes(GroupId(5), &bytes, version),
            Err(Violation::OtherGroup)
        );
    }

    #[test]
    fn a_configuration_that_no_node_can_hold_is_refused() {
        let config = Configuration {
            ranges: [1, 2, 3].into(),
            ..configuration()
        };
        assert!(config.to_node(GroupId(4)).is_err());
        let config = Configuration {
            servers: [ServerId(1)].into(),
            ..configuration()
        };
        assert!(config.to_node(GroupId(4)).is_err());
    }
}
