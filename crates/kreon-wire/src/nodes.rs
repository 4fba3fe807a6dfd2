//! The small nodes of the coordinator: servers and their limits, tables, and the format of the cluster.

use kreon_base::REGION_NAME_BYTES_MAX;

use crate::ids::{GroupId, ServerId};
use crate::limits::{NODE_BYTES_MAX, SPLIT_KEY_BYTES_MAX, TEXT_BYTES_MAX};
use crate::node::{NodeKind, put_sized, room_for, seal, sized, sized_text};
use crate::violation::Violation;

/// A server: the content of `servers/ID`. All texts have 1 to [`TEXT_BYTES_MAX`] bytes without control characters.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ServerNode {
    /// Its number, not 0.
    pub server: ServerId,
    /// Where other servers reach it.
    pub peer_address: String,
    /// Where clients reach it.
    pub client_address: String,
    /// What fails together with it: members of a group are chosen from different ones.
    pub domain: String,
}

impl ServerNode {
    /// The node that is the whole of `bytes`.
    pub fn decode(bytes: &[u8]) -> Result<Self, Violation> {
        let mut fields = NodeKind::Server.open(bytes)?;
        let server = ServerId(fields.u32()?);
        let peer_address = sized_text(&mut fields, TEXT_BYTES_MAX)?.to_owned();
        let client_address = sized_text(&mut fields, TEXT_BYTES_MAX)?.to_owned();
        let domain = sized_text(&mut fields, TEXT_BYTES_MAX)?.to_owned();
        fields.end()?;
        let node = Self {
            server,
            peer_address,
            client_address,
            domain,
        };
        node.check().map(|()| node)
    }

    /// The encoded node. Check it before: what [`check`](Self::check) refuses, `decode` refuses.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = NodeKind::Server.begin();
        bytes.extend_from_slice(&self.server.0.to_le_bytes());
        for text in self.texts() {
            put_sized(&mut bytes, text.as_bytes());
        }
        seal(bytes)
    }

    /// Whether its fields are within their ranges.
    pub fn check(&self) -> Result<(), Violation> {
        if self.texts().iter().any(|text| text.len() > TEXT_BYTES_MAX) {
            return Err(Violation::Count);
        }
        let wrong = |text: &&str| text.is_empty() || text.chars().any(char::is_control);
        match self.server.0 == 0 || self.texts().iter().any(wrong) {
            true => Err(Violation::FieldValue),
            false => Ok(()),
        }
    }

    fn texts(&self) -> [&str; 3] {
        [&self.peer_address, &self.client_address, &self.domain]
    }
}

/// Where the ranges of a table should lie: the content of `tables/T`. A hint; the groups' configurations decide.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TableNode {
    /// Its name: 1 to [`REGION_NAME_BYTES_MAX`] bytes without control characters.
    pub table: String,
    /// Not all groups have their ranges yet.
    pub creating: bool,
    /// First key and group of each range: at least one, ascending, the first from the empty key on.
    pub ranges: Vec<(Vec<u8>, GroupId)>,
}

/// Fewest bytes of an encoded range of a table.
const TABLE_RANGE_BYTES_MIN: usize = 6;

impl TableNode {
    /// The node that is the whole of `bytes`.
    pub fn decode(bytes: &[u8]) -> Result<Self, Violation> {
        let mut fields = NodeKind::Table.open(bytes)?;
        let creating = fields.flag()?;
        fields.zeroes::<3>()?;
        let count = fields.u32()? as usize;
        fields.zeroes::<4>()?;
        let table = sized_text(&mut fields, REGION_NAME_BYTES_MAX)?.to_owned();
        let mut ranges = room_for(&fields, count, TABLE_RANGE_BYTES_MIN)?;
        for _ in 0..count {
            let group = GroupId(fields.u32()?);
            let start = sized(&mut fields, SPLIT_KEY_BYTES_MAX)?.to_vec();
            ranges.push((start, group));
        }
        fields.end()?;
        let node = Self {
            table,
            creating,
            ranges,
        };
        node.check().map(|()| node)
    }

    /// The encoded node. Check it before: what [`check`](Self::check) refuses, `decode` refuses.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = NodeKind::Table.begin();
        bytes.extend_from_slice(&[self.creating.into(), 0, 0, 0]);
        bytes.extend_from_slice(&(self.ranges.len() as u64).to_le_bytes());
        put_sized(&mut bytes, self.table.as_bytes());
        for (start, group) in &self.ranges {
            bytes.extend_from_slice(&group.0.to_le_bytes());
            put_sized(&mut bytes, start);
        }
        seal(bytes)
    }

    /// Whether its fields are within their ranges and fit each other, and its encoding within a node.
    pub fn check(&self) -> Result<(), Violation> {
        let long = |(start, _): &(Vec<u8>, GroupId)| start.len() > SPLIT_KEY_BYTES_MAX;
        if self.table.len() > REGION_NAME_BYTES_MAX || self.ranges.iter().any(long) {
            return Err(Violation::Count);
        }
        let named = !self.table.is_empty() && !self.table.chars().any(char::is_control);
        if !named || self.ranges.iter().any(|(_, group)| group.0 == 0) {
            return Err(Violation::FieldValue);
        }
        let whole = self
            .ranges
            .first()
            .is_some_and(|(start, _)| start.is_empty());
        if !whole || !self.ranges.is_sorted_by(|a, b| a.0 < b.0) {
            return Err(Violation::Order);
        }
        match self.encode().len() <= NODE_BYTES_MAX as usize {
            true => Ok(()),
            false => Err(Violation::TooLong),
        }
    }
}

/// The format of the cluster: the content of `format`. A server that does not know it stays outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FormatNode {
    /// Version of everything below the root of the cluster, from 1 on.
    pub version: u32,
}

impl FormatNode {
    /// The node that is the whole of `bytes`. It is for the caller to compare the version.
    pub fn decode(bytes: &[u8]) -> Result<Self, Violation> {
        let mut fields = NodeKind::Format.open(bytes)?;
        let version = fields.u32()?;
        fields.end()?;
        match version {
            0 => Err(Violation::FieldValue),
            _ => Ok(Self { version }),
        }
    }

    /// The encoded node.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = NodeKind::Format.begin();
        bytes.extend_from_slice(&self.version.to_le_bytes());
        seal(bytes)
    }
}

/// What a server takes on: the content of `servers/ID/limits`. A server without it takes the usual.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LimitsNode {
    /// Most groups of which it is the primary where another member can be; not 0.
    pub primaries_max: u32,
}

impl LimitsNode {
    /// The node that is the whole of `bytes`.
    pub fn decode(bytes: &[u8]) -> Result<Self, Violation> {
        let mut fields = NodeKind::Limits.open(bytes)?;
        let primaries_max = fields.u32()?;
        fields.end()?;
        match primaries_max {
            0 => Err(Violation::FieldValue),
            _ => Ok(Self { primaries_max }),
        }
    }

    /// The encoded node.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = NodeKind::Limits.begin();
        bytes.extend_from_slice(&self.primaries_max.to_le_bytes());
        seal(bytes)
    }
}
