//! Puts fragments together to records and units, and hands on whole units only.

use kreon_base::{
    Attributes, KEY_BYTES_MAX, LogOffset, Lsn, RegionId, Result, VALUE_BYTES_MAX, planted,
};
use kreon_format::{
    FragmentHeader, MADE_VALUE_BYTES_MAX, RANGE_VALUE_BYTES_MAX, RecordKind, decode_attributes,
};

/// A record of a whole unit, as replay hands it on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplayRecord<'a> {
    /// Its order.
    pub lsn: Lsn,
    /// Where it starts on the volume.
    pub offset: LogOffset,
    /// Its region.
    pub region: RegionId,
    /// What it says about the key.
    pub kind: RecordKind,
    /// The key.
    pub key: &'a [u8],
    /// What is kept beside the value.
    pub attributes: Attributes,
    /// Bytes behind the key: the value, and in front of it its attributes, if it has any.
    pub value_bytes: u32,
    /// The value, unless it is longer than the replay asked for.
    pub value: Option<&'a [u8]>,
}

/// A fragment of a record, in its place.
pub struct Found<'a> {
    /// Position in the stream of the log.
    pub lsn: Lsn,
    /// Place on the volume.
    pub offset: LogOffset,
    /// Its header, checked.
    pub header: FragmentHeader,
    /// The bytes behind the header.
    pub payload: &'a [u8],
    /// It fills its segment to the end.
    pub fills_segment: bool,
}

/// The unit that is being put together. Long values are not kept: memory is bounded by the keys of one
/// unit and by values up to `value_bytes_max`.
#[derive(Default)]
pub struct Units {
    value_bytes_max: usize,
    /// Where the unit starts; none: the next fragment starts one.
    start: Option<Lsn>,
    /// Keys and values of `records`, and of `partial`.
    bytes: Vec<u8>,
    records: Vec<Gathered>,
    partial: Option<Gathered>,
    /// Records that were handed on.
    pub record_count: u64,
}

#[derive(Clone, Copy)]
struct Gathered {
    lsn: Lsn,
    offset: LogOffset,
    region: RegionId,
    kind: RecordKind,
    key_bytes: usize,
    has_attributes: bool,
    /// Known when the record is whole.
    attributes: Attributes,
    /// Bytes of key, attributes and value so far.
    payload_bytes: usize,
    /// Start of the key in `bytes`. Its attributes follow it, if it has any, and the value if it is short.
    at: usize,
}

impl Units {
    /// No unit yet. Records are handed on with values of at most `value_bytes_max` bytes.
    pub fn new(value_bytes_max: usize) -> Self {
        Self {
            value_bytes_max,
            ..Self::default()
        }
    }

    /// Where the incomplete unit starts.
    pub fn incomplete(&self) -> Option<Lsn> {
        self.start
    }

    /// Whether a record has begun and not ended.
    pub fn is_in_record(&self) -> bool {
        self.partial.is_some()
    }

    /// Adds the next fragment; a unit that it completes goes to `visit`. `Ok(Err(what))`: it does not
    /// belong here.
    pub fn add(
        &mut self,
        found: &Found<'_>,
        visit: &mut impl FnMut(ReplayRecord<'_>) -> Result<()>,
    ) -> Result<Result<(), &'static str>> {
        let header = &found.header;
        if header.starts_record == self.partial.is_some() {
            return Ok(Err("a piece of another record"));
        }
        if !header.ends_record && !found.fills_segment {
            return Ok(Err("a record cut before the end of its segment"));
        }
        let is_alone = self.start.is_none() && header.ends_unit && header.starts_record;
        self.start.get_or_insert(found.lsn);
        let mut record = match self.partial.take() {
            None => Gathered::begin(found, self.bytes.len()),
            Some(record) if record.is_of(header) => record,
            Some(_) => return Ok(Err("a piece of another record")),
        };
        if is_alone {
            return self.hand_on_alone(record, found.payload, visit);
        }
        self.gather(&mut record, found.payload);
        if record.payload_bytes > KEY_BYTES_MAX + Attributes::BYTES + VALUE_BYTES_MAX {
            return Ok(Err("a record longer than any can be"));
        }
        if !header.ends_record {
            self.partial = Some(record);
            return Ok(Ok(()));
        }
        let whole = self.bytes.get(record.at..).unwrap_or_default();
        if let Err(what) = record.complete(whole) {
            return Ok(Err(what));
        }
        self.records.push(record);
        if header.ends_unit {
            self.hand_on(visit)?;
        }
        planted!(TornBatchReplayed => self.hand_on(visit)?);
        Ok(Ok(()))
    }

    /// Whether a value of this length is handed on. That of a deleted range or of a new region always is: it is nowhere else.
    fn keeps(&self, kind: RecordKind, value_bytes: usize) -> bool {
        match kind {
            RecordKind::DeleteRange => value_bytes <= RANGE_VALUE_BYTES_MAX,
            RecordKind::MakeRegion => value_bytes <= MADE_VALUE_BYTES_MAX,
            _ => value_bytes <= self.value_bytes_max,
        }
    }

    /// Keeps what is in front of the value and, if that may be short, the value's part of `payload`.
    fn gather(&mut self, record: &mut Gathered, payload: &[u8]) {
        let front_left = record.front_bytes().saturating_sub(record.payload_bytes);
        record.payload_bytes += payload.len();
        let value_bytes = record.payload_bytes.saturating_sub(record.front_bytes());
        if self.keeps(record.kind, value_bytes) {
            self.bytes.extend_from_slice(payload);
        } else {
            self.bytes
                .extend_from_slice(payload.get(..front_left).unwrap_or(payload));
            self.bytes.truncate(record.at + record.front_bytes());
        }
    }

    /// The usual case: a unit of one record in one piece needs no copy.
    fn hand_on_alone(
        &mut self,
        mut record: Gathered,
        payload: &[u8],
        visit: &mut impl FnMut(ReplayRecord<'_>) -> Result<()>,
    ) -> Result<Result<(), &'static str>> {
        record.payload_bytes = payload.len();
        if let Err(what) = record.complete(payload) {
            return Ok(Err(what));
        }
        let (key, value) = record.split(payload);
        let value = self.keeps(record.kind, value.len()).then_some(value);
        visit(record.shown(key, value))?;
        self.record_count += 1;
        self.start = None;
        Ok(Ok(()))
    }

    fn hand_on(&mut self, visit: &mut impl FnMut(ReplayRecord<'_>) -> Result<()>) -> Result<()> {
        for record in &self.records {
            let (key, rest) = record.split(self.bytes.get(record.at..).unwrap_or_default());
            let value_bytes = record.payload_bytes - record.front_bytes();
            let is_kept = self.keeps(record.kind, value_bytes);
            visit(record.shown(key, rest.get(..value_bytes).filter(|_| is_kept)))?;
        }
        self.record_count += self.records.len() as u64;
        self.records.clear();
        self.bytes.clear();
        self.start = None;
        Ok(())
    }
}

impl Gathered {
    fn begin(found: &Found<'_>, at: usize) -> Self {
        let header = &found.header;
        Self {
            lsn: found.lsn,
            offset: found.offset,
            region: header.region,
            kind: header.kind,
            key_bytes: header.key_bytes as usize,
            has_attributes: header.has_attributes,
            attributes: Attributes::NONE,
            payload_bytes: 0,
            at,
        }
    }

    /// Bytes in front of the value.
    fn front_bytes(&self) -> usize {
        match self.has_attributes {
            true => self.key_bytes + Attributes::BYTES,
            false => self.key_bytes,
        }
    }

    /// All of the record is there; `bytes` begin with what is in front of its value.
    fn complete(&mut self, bytes: &[u8]) -> Result<(), &'static str> {
        if self.payload_bytes < self.key_bytes {
            return Err("a record shorter than its key");
        }
        if self.has_attributes {
            let stored = bytes.get(self.key_bytes..).and_then(<[u8]>::first_chunk);
            let attributes = stored.and_then(|stored| decode_attributes(*stored));
            self.attributes = attributes.ok_or("a record with attributes that are none")?;
        }
        Ok(())
    }

    /// The key and what there is of the value, in `bytes`, which begin with the key.
    fn split<'b>(&self, bytes: &'b [u8]) -> (&'b [u8], &'b [u8]) {
        let key = bytes.get(..self.key_bytes).unwrap_or_default();
        (key, bytes.get(self.front_bytes()..).unwrap_or_default())
    }

    fn is_of(&self, header: &FragmentHeader) -> bool {
        self.region == header.region
            && self.kind == header.kind
            && self.key_bytes == header.key_bytes as usize
            && self.has_attributes == header.has_attributes
    }

    fn shown<'a>(&self, key: &'a [u8], value: Option<&'a [u8]>) -> ReplayRecord<'a> {
        ReplayRecord {
            lsn: self.lsn,
            offset: self.offset,
            region: self.region,
            kind: self.kind,
            key,
            attributes: self.attributes,
            value_bytes: (self.payload_bytes - self.key_bytes) as u32,
            value,
        }
    }
}

#[cfg(test)]
mod tests {
    use kreon_base::Timestamp;
    use kreon_format::encode_attributes;

    use super::*;

    /// The whole of a record of one fragment that is not alone in its unit.
    const WHOLE: FragmentHeader = FragmentHeader {
        length_bytes: 0,
        region: RegionId(1),
        key_bytes: 3,
        kind: RecordKind::Put,
        has_attributes: false,
        starts_record: true,
        ends_record: true,
        ends_unit: false,
        incarnation: 1,
    };
    const BEGIN: FragmentHeader = FragmentHeader {
        ends_record: false,
        ..WHOLE
    };
    const END: FragmentHeader = FragmentHeader {
        starts_record: false,
        ..WHOLE
    };

    /// Adds fragments, all but the last at the end of their segments; why the last one is refused.
    /// Nothing may be handed on.
    fn refusal(fragments: &[(FragmentHeader, &[u8])]) -> &'static str {
        let mut units = Units::new(100);
        let (last, first) = fragments.split_last().unwrap();
        let mut add = |(header, payload): &(FragmentHeader, &[u8]), fills_segment| {
            let found = Found {
                lsn: Lsn(8),
                offset: LogOffset(8),
                header: *header,
                payload,
                fills_segment,
            };
            let added = units.add(&found, &mut |record| panic!("{record:?}"));
            added.unwrap()
        };
        for fragment in first {
            add(fragment, true).unwrap();
        }
        add(last, false).unwrap_err()
    }

    #[test]
    fn a_record_begins_with_its_first_piece_and_ends_with_its_last() {
        let other = "a piece of another record";
        assert_eq!(refusal(&[(END, b"key")]), other);
        assert_eq!(refusal(&[(BEGIN, b"key"), (WHOLE, b"key")]), other);
        let cut = "a record cut before the end of its segment";
        assert_eq!(refusal(&[(BEGIN, b"key")]), cut);
    }

    #[test]
    fn the_pieces_of_a_record_agree() {
        let of_another_region = FragmentHeader {
            region: RegionId(2),
            ..END
        };
        let of_another_kind = FragmentHeader {
            kind: RecordKind::Delete,
            ..END
        };
        let of_another_key = FragmentHeader {
            key_bytes: 4,
            ..END
        };
        let with_attributes = FragmentHeader {
            has_attributes: true,
            ..END
        };
        let others = [of_another_region, of_another_kind, of_another_key];
        for header in others.into_iter().chain([with_attributes]) {
            let why = refusal(&[(BEGIN, b"key"), (header, b"value")]);
            assert_eq!(why, "a piece of another record");
        }
    }

    #[test]
    fn attributes_are_whole_and_known() {
        let with = |ends_unit| FragmentHeader {
            has_attributes: true,
            ends_unit,
            ..WHOLE
        };
        let none = "a record with attributes that are none";
        for ends_unit in [true, false] {
            assert_eq!(refusal(&[(with(ends_unit), b"key1234567")]), none);
            assert_eq!(refusal(&[(with(ends_unit), &[0; 11])]), none);
        }
    }

    #[test]
    fn attributes_are_handed_on_beside_a_value_that_is_not() {
        let expires = Timestamp::of_ms(0x0102_0304_0506);
        let front = [
            b"key",
            &encode_attributes(Attributes::expiring(Some(expires)))[..],
        ]
        .concat();
        let payload = [&front[..], &[7; 101]].concat();
        let header = |starts_record, ends_record| FragmentHeader {
            has_attributes: true,
            starts_record,
            ends_record,
            ends_unit: ends_record,
            ..WHOLE
        };
        // Cut nowhere, in the key, in the attributes, in the value.
        for cut in [0, 2, 7, 50] {
            let (mut units, mut seen) = (Units::new(100), Vec::new());
            let parts = match cut {
                0 => vec![(header(true, true), &payload[..])],
                _ => {
                    let (first, last) = payload.split_at(cut);
                    vec![(header(true, false), first), (header(false, true), last)]
                }
            };
            for (header, payload) in parts {
                let found = Found {
                    lsn: Lsn(8),
                    offset: LogOffset(8),
                    header,
                    payload,
                    fills_segment: !header.ends_record,
                };
                let mut visit = |record: ReplayRecord<'_>| {
                    assert_eq!((record.key, record.value), (&b"key"[..], None));
                    seen.push((record.attributes.expires(), record.value_bytes));
                    Ok(())
                };
                units.add(&found, &mut visit).unwrap().unwrap();
            }
            assert_eq!(seen, [(Some(expires), 109)], "cut at {cut}");
        }
    }

    #[test]
    fn a_record_is_as_long_as_its_key_at_least_and_as_the_limits_at_most() {
        let short = "a record shorter than its key";
        assert_eq!(refusal(&[(WHOLE, b"ke")]), short);
        let alone = FragmentHeader {
            ends_unit: true,
            ..WHOLE
        };
        assert_eq!(refusal(&[(alone, b"ke")]), short);
        assert_eq!(refusal(&[(BEGIN, b"k"), (END, b"e")]), short);
        // Never touched: its memory is not taken.
        let long = vec![0; KEY_BYTES_MAX + Attributes::BYTES + VALUE_BYTES_MAX + 1];
        assert_eq!(
            refusal(&[(WHOLE, &long)]),
            "a record longer than any can be"
        );
    }
}
