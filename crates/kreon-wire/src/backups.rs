//! How far backups and joiners are, as their primary sees them; and digests of their files.

use crate::fields::Fields;
use crate::ids::{Member, ProcessId, ServerId};
use crate::limits::{DIGESTS_MAX, MEMBERS_MAX};
use crate::many::{Many, ManyBody};
use crate::violation::Violation;

/// Codes of these replies.
pub(crate) const BACKUPS_CODE: u8 = 9;
pub(crate) const DIGESTS_CODE: u8 = 10;

const FRONT_BYTES: usize = 8;

/// How far a backup or joiner is, as its primary sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Backup {
    /// Who.
    pub member: Member,
    /// Whether acknowledgements wait for it; a joiner is copied to.
    pub is_counted: bool,
    /// Its stream has ended.
    pub has_ended: bool,
    /// Bytes of the log that it has not in memory.
    pub lag_bytes: u64,
    /// Bytes of the log that are not durable there.
    pub durable_lag_bytes: u64,
    /// Of a joiner: bytes that were copied in this term; of others what was when they joined.
    pub copied_bytes: u64,
    /// Of a joiner: bytes that its copy has, as far as known, those that were copied included; of others 0.
    pub to_copy_bytes: u64,
}

impl Backup {
    fn read(fields: &mut Fields<'_>) -> Result<Self, Violation> {
        let server = ServerId(fields.u32()?);
        let (is_counted, has_ended) = (fields.flag()?, fields.flag()?);
        fields.zeroes::<2>()?;
        let mut process = [0; 16];
        process.copy_from_slice(fields.bytes(16)?);
        let member = Member {
            server,
            process: ProcessId(process),
        };
        Ok(Self {
            member,
            is_counted,
            has_ended,
            lag_bytes: fields.u64()?,
            durable_lag_bytes: fields.u64()?,
            copied_bytes: fields.u64()?,
            to_copy_bytes: fields.u64()?,
        })
    }

    fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(56);
        bytes.extend_from_slice(&self.member.server.0.to_le_bytes());
        bytes.extend_from_slice(&[self.is_counted.into(), self.has_ended.into(), 0, 0]);
        bytes.extend_from_slice(&self.member.process.0);
        for number in [
            self.lag_bytes,
            self.durable_lag_bytes,
            self.copied_bytes,
            self.to_copy_bytes,
        ] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        bytes
    }
}

/// Backups and joiners, checked; they are read where they stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Backups<'a>(Many<'a>);

impl<'a> Backups<'a> {
    /// What follows the first byte of the body.
    pub(crate) fn read(mut fields: Fields<'a>) -> Result<Self, Violation> {
        fields.zeroes::<3>()?;
        match fields.u32()? {
            count if count as usize > MEMBERS_MAX => Err(Violation::Count),
            count => Many::read(count, fields, Backup::read).map(Self),
        }
    }

    /// How many.
    pub const fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether the primary is alone.
    pub const fn is_empty(&self) -> bool {
        self.0.count == 0
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = Backup> + use<'a> {
        self.0.iter(Backup::read)
    }

    pub(crate) fn put(&self, to: &mut Vec<u8>) {
        to.extend_from_slice(&front(BACKUPS_CODE, self.0.count));
        to.extend_from_slice(self.0.bytes);
    }
}

/// The body of a reply with these backups; no more than [`MEMBERS_MAX`] of them.
pub fn backups_body(backups: &[Backup]) -> Vec<u8> {
    let mut body = ManyBody::new(FRONT_BYTES);
    for backup in backups.iter().take(MEMBERS_MAX) {
        // A reply has room for far more than the most.
        let _ = body.push(&[&backup.bytes()]);
    }
    let front = front(BACKUPS_CODE, body.count);
    body.finish(&front)
}

/// Digests of blocks, checked; they are read where they stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Digests<'a>(Many<'a>);

impl<'a> Digests<'a> {
    /// What follows the first byte of the body.
    pub(crate) fn read(mut fields: Fields<'a>) -> Result<Self, Violation> {
        fields.zeroes::<3>()?;
        match fields.u32()? {
            count if !(1..=DIGESTS_MAX).contains(&count) => Err(Violation::Count),
            count => Many::read(count, fields, |fields| fields.u32()).map(Self),
        }
    }

    /// How many.
    pub const fn len(&self) -> usize {
        self.0.len()
    }

    /// Never: somebody asked for a block.
    pub const fn is_empty(&self) -> bool {
        self.0.count == 0
    }

    /// CRC-32C of each block, in the order of the file.
    pub fn iter(&self) -> impl Iterator<Item = u32> + use<'a> {
        self.0.iter(|fields| fields.u32())
    }

    pub(crate) fn put(&self, to: &mut Vec<u8>) {
        to.extend_from_slice(&front(DIGESTS_CODE, self.0.count));
        to.extend_from_slice(self.0.bytes);
    }
}

/// The body of a reply with these digests: 1 to [`DIGESTS_MAX`].
pub fn digests_body(digests: &[u32]) -> Vec<u8> {
    let mut body = ManyBody::new(FRONT_BYTES);
    for digest in digests.iter().take(DIGESTS_MAX as usize) {
        // A reply has room for the most.
        let _ = body.push(&[&digest.to_le_bytes()]);
    }
    let front = front(DIGESTS_CODE, body.count);
    body.finish(&front)
}

fn front(code: u8, count: u32) -> [u8; FRONT_BYTES] {
    let count = count.to_le_bytes();
    [code, 0, 0, 0, count[0], count[1], count[2], count[3]]
}
