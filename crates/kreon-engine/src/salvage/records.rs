//! Reads log records that leaves point at.

use kreon_base::{Attributes, Error, LogOffset, Lsn, RegionId, Result};
use kreon_format::{Fragment, FragmentSeal, RecordKind, fragment_bytes};

use super::log_walk::LogAt;
use kreon_log::Pieces;

/// A record, as described by the entry of a leaf.
#[derive(Clone, Debug)]
pub struct Wanted {
    pub offset: LogOffset,
    pub region: RegionId,
    /// Of the entry.
    pub lsn: Lsn,
    /// The stored part of the key.
    pub stored: Vec<u8>,
    pub key_bytes: u32,
    /// Bytes behind the key.
    pub value_bytes: u32,
    pub attributes: Attributes,
    pub is_deletion: bool,
    /// The key is erased by a deleted range; the record is of an older version.
    pub is_erased: bool,
}

/// Key and value of a record.
pub struct KeyValue {
    pub key: Vec<u8>,
    pub value: Vec<u8>,
}

/// A fragment of a wanted record.
struct Part {
    offset: LogOffset,
    sequence: u64,
    payload_bytes: usize,
    is_first: bool,
    is_last: bool,
}

impl LogAt<'_> {
    /// The records, in the order of `wanted`. Holds the fragments and values of all records in memory; of a single
    /// record one fragment at a time.
    pub fn records(&self, wanted: &[Wanted]) -> Vec<Result<KeyValue>> {
        if let [alone] = wanted {
            return vec![self.read_alone(alone)];
        }
        let parts: Vec<_> = wanted.iter().map(|wanted| self.parts(wanted)).collect();
        let ranges: Vec<_> = parts
            .iter()
            .flatten()
            .flatten()
            .map(|part| (part.offset.0, fragment_bytes(part.payload_bytes)))
            .collect();
        let mut bytes = self.source.ranges(&ranges).into_iter();
        let read = parts.into_iter().zip(wanted).map(|(parts, wanted)| {
            let parts = parts?;
            // Consumed even after a failure, so that the next record begins at its own fragments.
            let read: Vec<_> = bytes.by_ref().take(parts.len()).collect();
            let mut whole = Vec::with_capacity((wanted.key_bytes + wanted.value_bytes) as usize);
            for (part, bytes) in parts.iter().zip(read) {
                self.append(wanted, part, &bytes?, &mut whole)?;
            }
            split(wanted, whole)
        });
        read.collect()
    }

    /// Reads a possibly long record, one fragment at a time.
    fn read_alone(&self, wanted: &Wanted) -> Result<KeyValue> {
        let parts = self.parts(wanted)?;
        let mut whole = Vec::with_capacity((wanted.key_bytes + wanted.value_bytes) as usize);
        for part in &parts {
            let range = (part.offset.0, fragment_bytes(part.payload_bytes));
            let read = self.source.ranges(&[range]).pop();
            let bytes = read.ok_or_else(|| Error::corruption("nothing was read"))??;
            self.append(wanted, part, &bytes, &mut whole)?;
        }
        split(wanted, whole)
    }

    fn parts(&self, wanted: &Wanted) -> Result<Vec<Part>> {
        let payload_bytes = wanted.key_bytes as usize + wanted.value_bytes as usize;
        let first = wanted.offset.segment();
        let sequence = self.map.sequence(first).ok_or_else(|| {
            Error::corruption(format!("{first} is not known as a segment of the log"))
        })?;
        let mut parts: Vec<Part> = Vec::new();
        for (sequence, piece) in
            (sequence..).zip(Pieces::new(wanted.offset.within_segment(), payload_bytes))
        {
            let placed = self.map.get(sequence).ok_or_else(|| {
                Error::corruption(format!("no segment is known to have number {sequence}"))
            })?;
            let offset = placed.segment.offset_bytes() + u64::from(piece.within);
            parts.push(Part {
                offset: LogOffset(offset),
                sequence,
                payload_bytes: piece.payload_bytes,
                is_first: parts.is_empty(),
                is_last: piece.is_last,
            });
        }
        match parts.last() {
            Some(part) if part.is_last => Ok(parts),
            _ => Err(Error::corruption("no record stands there")),
        }
    }

    fn append(
        &self,
        wanted: &Wanted,
        part: &Part,
        bytes: &[u8],
        whole: &mut Vec<u8>,
    ) -> Result<()> {
        let seal = FragmentSeal {
            store: self.store,
            sequence: part.sequence,
        };
        let Fragment::Record { header, payload } = Fragment::decode(bytes, &seal, part.offset)?
        else {
            return Err(Error::corruption("filler stands where a record should"));
        };
        let is_it = header.region == wanted.region
            && header.key_bytes == wanted.key_bytes
            && payload.len() == part.payload_bytes
            && header.starts_record == part.is_first
            && header.ends_record == part.is_last
            && header.kind != RecordKind::MakeRegion
            && !header.kind.is_notice()
            && header.has_attributes != wanted.attributes.is_none()
            && (header.kind == RecordKind::Delete) == wanted.is_deletion;
        if !is_it {
            return Err(Error::corruption("another record stands there"));
        }
        whole.extend_from_slice(payload);
        Ok(())
    }
}

fn split(wanted: &Wanted, mut whole: Vec<u8>) -> Result<KeyValue> {
    let front_bytes = wanted.key_bytes as usize + wanted.attributes.stored_bytes();
    if !whole.starts_with(&wanted.stored) || whole.len() < front_bytes {
        return Err(Error::corruption("a record with another key stands there"));
    }
    let mut key: Vec<u8> = whole.drain(..front_bytes).collect();
    key.truncate(wanted.key_bytes as usize);
    Ok(KeyValue { key, value: whole })
}
