//! What a client asks of a scan: one page.

use kreon_base::KEY_BYTES_MAX;

use crate::bounds::{Bounds, code_of, edge_of, key_of};
use crate::fields::Fields;
use crate::ids::SnapshotId;
use crate::limits::{PAGE_ENTRIES_MAX, REQUEST_BYTES_MAX};
use crate::node::put_sized;
use crate::operations::table;
use crate::violation::Violation;

/// The next page of a scan: the first entries within `bounds`, from its end if the scan is reverse. The client asks for
/// the page behind it with the last key excluded and the snapshot of the reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ScanPart<'a> {
    /// The table.
    pub table: &'a str,
    /// What is left of the scan, within one range of the group.
    pub bounds: Bounds<'a>,
    /// Descending.
    pub is_reverse: bool,
    /// Entries come without their values.
    pub keys_only: bool,
    /// Most entries of the page, 1 to [`PAGE_ENTRIES_MAX`].
    pub entries_max: u32,
    /// Most bytes of its keys and values, 1 to [`REQUEST_BYTES_MAX`]. The first entry comes however long it is.
    pub bytes_max: u32,
    /// The snapshot. At 0 the server takes one, which lives until the last page, unless it is released before.
    pub snapshot: SnapshotId,
}

impl<'a> ScanPart<'a> {
    /// What follows the first byte of the body.
    pub(crate) fn read(mut fields: Fields<'a>) -> Result<Self, Violation> {
        let (is_reverse, keys_only) = (fields.flag()?, fields.flag()?);
        let edges = [fields.u8()?, fields.u8()?];
        fields.zeroes::<3>()?;
        let snapshot = SnapshotId(fields.u64()?);
        let (entries_max, bytes_max) = (fields.u32()?, fields.u32()?);
        let start_bytes = fields.len_upto(KEY_BYTES_MAX)?;
        let end_bytes = fields.len_upto(KEY_BYTES_MAX)?;
        if !(1..=PAGE_ENTRIES_MAX).contains(&entries_max)
            || !(1..=REQUEST_BYTES_MAX).contains(&bytes_max)
        {
            return Err(Violation::FieldValue);
        }
        let table = table(&mut fields)?;
        let bounds = Bounds {
            start: edge_of(edges[0], fields.bytes(start_bytes)?)?,
            end: edge_of(edges[1], fields.bytes(end_bytes)?)?,
        };
        fields.end()?;
        Ok(Self {
            table,
            bounds,
            is_reverse,
            keys_only,
            entries_max,
            bytes_max,
            snapshot,
        })
    }

    /// Everything behind the code of the request.
    pub(crate) fn put(&self, to: &mut Vec<u8>) {
        let edges = [self.bounds.start, self.bounds.end];
        let keys = edges.map(key_of);
        to.extend_from_slice(&[self.is_reverse.into(), self.keys_only.into()]);
        to.extend_from_slice(&edges.map(code_of));
        to.extend_from_slice(&[0; 3]);
        to.extend_from_slice(&self.snapshot.0.to_le_bytes());
        to.extend_from_slice(&self.entries_max.to_le_bytes());
        to.extend_from_slice(&self.bytes_max.to_le_bytes());
        keys.iter()
            .for_each(|key| to.extend_from_slice(&(key.len() as u32).to_le_bytes()));
        put_sized(to, self.table.as_bytes());
        keys.iter().for_each(|key| to.extend_from_slice(key));
    }
}
