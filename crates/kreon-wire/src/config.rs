//! The configuration of a group: the content of the coordinator's node `groups/G`.

use kreon_base::REGION_NAME_BYTES_MAX;

use crate::fields::Fields;
use crate::ids::{GroupId, Member, ProcessId, ServerId, Term};
use crate::limits::{MEMBERS_MAX, NODE_BYTES_MAX, SPLIT_KEY_BYTES_MAX};
use crate::node::{NodeKind, put_sized, room_for, seal, sized, sized_text};
use crate::violation::Violation;

/// Who holds a group, who may acknowledge for it, and what lies in it. The coordinator has the only true one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct GroupConfig {
    /// The group: a node read from the wrong place is noticed.
    pub group: GroupId,
    /// The term; 0 before the first.
    pub term: Term,
    /// This term was begun although the set of the one before may have had more: its primary waits until a primary that
    /// is cut off has noticed.
    pub loss_accepted: bool,
    /// The last term that an operator began by giving up what the rest of a set may have, at most `term`; 0 before the
    /// first. It stays: whoever has seen lower terms only goes by this node, although its version may be lower than one
    /// that he has seen, of a coordinator that was restored from a copy since.
    pub loss_term: Term,
    /// The set came back after all of it had failed: its members have different ends, and nobody is promoted without the
    /// reports of all.
    pub all_needed: bool,
    /// Fewest members of the set for writes, 1 to [`MEMBERS_MAX`].
    pub min_in_sync: u8,
    /// The primary of the term, one of `in_sync`; `None` while the term has none yet.
    pub primary: Option<Member>,
    /// The set: who has everything that is acknowledged. Ascending by server, each once, all of `members`.
    pub in_sync: Vec<Member>,
    /// The servers that are to hold the group: 1 to [`MEMBERS_MAX`], ascending.
    pub members: Vec<ServerId>,
    /// What lies in the group: ascending by table and start, without overlaps.
    pub ranges: Vec<KeyRange>,
}

/// The keys of a table from `start` up to `end`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct KeyRange {
    /// Name of the table: 1 to [`REGION_NAME_BYTES_MAX`] bytes without control characters.
    pub table: String,
    /// The first key: up to [`SPLIT_KEY_BYTES_MAX`] bytes, empty for the first of the table.
    pub start: Vec<u8>,
    /// The first key behind it, above `start`, up to [`SPLIT_KEY_BYTES_MAX`] bytes; `None` for the rest of the table.
    pub end: Option<Vec<u8>>,
}

/// Fewest bytes of an encoded range: flags, three lengths and one byte of a name.
const RANGE_BYTES_MIN: usize = 8;

/// Bytes of an encoded member of a set.
const MEMBER_BYTES: usize = 20;

impl KeyRange {
    /// The bytes of ranges, one behind the other, as they stand in a node.
    pub fn encode_all(ranges: &[Self]) -> Vec<u8> {
        let mut bytes = Vec::new();
        ranges.iter().for_each(|range| range.encode(&mut bytes));
        bytes
    }

    /// The ranges whose bytes these are, without a check of their order.
    pub fn decode_all(bytes: &[u8]) -> Result<Vec<Self>, Violation> {
        let mut fields = Fields::of(bytes);
        let mut ranges = Vec::new();
        while fields.left() > 0 {
            let range = Self::decode(&mut fields)?;
            range.check()?;
            ranges.push(range);
        }
        Ok(ranges)
    }

    /// Whether `key` of the table lies in it.
    pub fn holds(&self, key: &[u8]) -> bool {
        let before_end = self.end.as_ref().is_none_or(|end| key < end.as_slice());
        self.start.as_slice() <= key && before_end
    }

    /// Whether all of it precedes `later`.
    fn precedes(&self, later: &Self) -> bool {
        match self.table == later.table {
            true => self.end.as_ref().is_some_and(|end| *end <= later.start),
            false => self.table < later.table,
        }
    }

    fn decode(fields: &mut Fields<'_>) -> Result<Self, Violation> {
        let bounded = fields.flag()?;
        let table = sized_text(fields, REGION_NAME_BYTES_MAX)?.to_owned();
        let start = sized(fields, SPLIT_KEY_BYTES_MAX)?.to_vec();
        let end = sized(fields, SPLIT_KEY_BYTES_MAX)?.to_vec();
        // One range has one encoding.
        if !bounded && !end.is_empty() {
            return Err(Violation::FieldValue);
        }
        let end = bounded.then_some(end);
        Ok(Self { table, start, end })
    }

    fn encode(&self, to: &mut Vec<u8>) {
        to.push(self.end.is_some().into());
        put_sized(to, self.table.as_bytes());
        put_sized(to, &self.start);
        put_sized(to, self.end.as_deref().unwrap_or_default());
    }

    fn check(&self) -> Result<(), Violation> {
        let keys = [Some(&self.start), self.end.as_ref()];
        let long = |key: &&Vec<u8>| key.len() > SPLIT_KEY_BYTES_MAX;
        if self.table.len() > REGION_NAME_BYTES_MAX || keys.iter().flatten().any(long) {
            return Err(Violation::Count);
        }
        if self.table.is_empty() || self.table.chars().any(char::is_control) {
            return Err(Violation::FieldValue);
        }
        match self.end.as_ref().is_some_and(|end| *end <= self.start) {
            true => Err(Violation::Order),
            false => Ok(()),
        }
    }
}

impl GroupConfig {
    /// The configuration that is the whole of `bytes`.
    pub fn decode(bytes: &[u8]) -> Result<Self, Violation> {
        let mut fields = NodeKind::Group.open(bytes)?;
        let group = GroupId(fields.u32()?);
        let term = Term(fields.u64()?);
        let loss_accepted = fields.flag()?;
        let min_in_sync = fields.u8()?;
        let has_primary = fields.flag()?;
        let all_needed = fields.flag()?;
        let members = usize::from(fields.u16()?);
        let in_sync = usize::from(fields.u16()?);
        let ranges = fields.u32()? as usize;
        fields.zeroes::<4>()?;
        let loss_term = Term(fields.u64()?);
        if members > MEMBERS_MAX || in_sync > members {
            return Err(Violation::Count);
        }
        let config = Self {
            group,
            term,
            loss_accepted,
            loss_term,
            all_needed,
            min_in_sync,
            primary: has_primary.then(|| member(&mut fields)).transpose()?,
            members: list(&mut fields, members, 4, |fields| fields.u32().map(ServerId))?,
            in_sync: list(&mut fields, in_sync, MEMBER_BYTES, member)?,
            ranges: list(&mut fields, ranges, RANGE_BYTES_MIN, KeyRange::decode)?,
        };
        fields.end()?;
        config.check().map(|()| config)
    }

    /// The encoded configuration. Check it before: what [`check`](Self::check) refuses, `decode` refuses.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = NodeKind::Group.begin();
        bytes.extend_from_slice(&self.group.0.to_le_bytes());
        bytes.extend_from_slice(&self.term.0.to_le_bytes());
        bytes.push(self.loss_accepted.into());
        bytes.push(self.min_in_sync);
        bytes.push(self.primary.is_some().into());
        bytes.push(self.all_needed.into());
        bytes.extend_from_slice(&(self.members.len() as u16).to_le_bytes());
        bytes.extend_from_slice(&(self.in_sync.len() as u16).to_le_bytes());
        bytes.extend_from_slice(&(self.ranges.len() as u64).to_le_bytes());
        bytes.extend_from_slice(&self.loss_term.0.to_le_bytes());
        self.primary
            .iter()
            .for_each(|primary| put(&mut bytes, primary));
        for server in &self.members {
            bytes.extend_from_slice(&server.0.to_le_bytes());
        }
        self.in_sync
            .iter()
            .for_each(|member| put(&mut bytes, member));
        bytes.extend_from_slice(&KeyRange::encode_all(&self.ranges));
        seal(bytes)
    }

    /// Whether its fields are within their ranges and fit each other, and its encoding within a node.
    pub fn check(&self) -> Result<(), Violation> {
        let in_range = self.group.0 != 0
            && self.term <= Term::MAX
            && self.loss_term <= self.term
            && (1..=MEMBERS_MAX).contains(&self.min_in_sync.into())
            && self.members.iter().all(|server| server.0 != 0);
        if !in_range {
            return Err(Violation::FieldValue);
        }
        if !(1..=MEMBERS_MAX).contains(&self.members.len()) {
            return Err(Violation::Count);
        }
        self.ranges.iter().try_for_each(KeyRange::check)?;
        let ordered = self.members.is_sorted_by(|a, b| a < b)
            && self.in_sync.is_sorted_by(|a, b| a.server < b.server)
            && self.ranges.is_sorted_by(KeyRange::precedes);
        let known = |member: &Member| self.members.contains(&member.server);
        let is_in_set = |primary: &Member| self.in_sync.contains(primary);
        if !ordered || !self.in_sync.iter().all(known) || !self.primary.iter().all(is_in_set) {
            return Err(Violation::Order);
        }
        match self.encode().len() <= NODE_BYTES_MAX as usize {
            true => Ok(()),
            false => Err(Violation::TooLong),
        }
    }

    /// Whether the set holds this start of this server.
    pub fn is_in_sync(&self, member: &Member) -> bool {
        self.in_sync.contains(member)
    }

    /// The range that holds `key` of `table`, if the group has it.
    pub fn range_of(&self, table: &str, key: &[u8]) -> Option<&KeyRange> {
        let here = |range: &&KeyRange| range.table == table && range.holds(key);
        self.ranges.iter().find(here)
    }
}

fn member(fields: &mut Fields<'_>) -> Result<Member, Violation> {
    Ok(Member {
        server: ServerId(fields.u32()?),
        process: ProcessId(fields.array()?),
    })
}

fn put(to: &mut Vec<u8>, member: &Member) {
    to.extend_from_slice(&member.server.0.to_le_bytes());
    to.extend_from_slice(&member.process.0);
}

/// `count` entries of at least `entry_bytes` each.
fn list<'a, T>(
    fields: &mut Fields<'a>,
    count: usize,
    entry_bytes: usize,
    decode: impl Fn(&mut Fields<'a>) -> Result<T, Violation>,
) -> Result<Vec<T>, Violation> {
    let mut entries = room_for(fields, count, entry_bytes)?;
    for _ in 0..count {
        entries.push(decode(fields)?);
    }
    Ok(entries)
}
