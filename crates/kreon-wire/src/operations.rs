//! The changes of a write: reading them where they stand, and collecting them.

use kreon_base::{KEY_BYTES_MAX, REGION_NAME_BYTES_MAX};

use crate::bounds::{Bounds, code_of, edge_of, key_of};
use crate::codes::codes;
use crate::fields::Fields;
use crate::limits::{REQUEST_BYTES_MAX, TABLES_MAX, VALUE_BYTES_MAX};
use crate::node::{put_sized, sized_text};
use crate::violation::Violation;

/// Bytes of the fixed fields in front of the changes.
pub(crate) const FRONT_BYTES: usize = 16;

/// Bytes in front of key and value of a change.
const CHANGE_BYTES: usize = 12;

codes! {
    /// What of a write must be safe before it is answered.
    Durability {
        /// It is in the memory of all counted members.
        Replicated = 1,
        /// It is durable on all counted members.
        Sync = 2,
    }
}

codes! {
    /// What a change does.
    Change {
        /// Sets a value.
        Put = 1,
        /// Deletes a key.
        Delete = 2,
        /// Deletes the keys of a range.
        DeleteRange = 3,
    }
}

/// A change. Its table is the number, from 0 on, of one that the write names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation<'a> {
    /// The key gets this value.
    Put {
        /// Its table.
        table: u8,
        /// Up to [`KEY_BYTES_MAX`] bytes.
        key: &'a [u8],
        /// Up to [`VALUE_BYTES_MAX`] bytes.
        value: &'a [u8],
    },
    /// The key gets none.
    Delete {
        /// Its table.
        table: u8,
        /// Up to [`KEY_BYTES_MAX`] bytes.
        key: &'a [u8],
    },
    /// No key in these bounds has one.
    DeleteRange {
        /// Its table.
        table: u8,
        /// Which keys.
        bounds: Bounds<'a>,
    },
}

impl<'a> Operation<'a> {
    /// The number of its table.
    pub const fn table(&self) -> u8 {
        match self {
            Self::Put { table, .. }
            | Self::Delete { table, .. }
            | Self::DeleteRange { table, .. } => *table,
        }
    }

    fn read(fields: &mut Fields<'a>) -> Result<Self, Violation> {
        let change = Change::of(fields.u8()?)?;
        let edges = [fields.u8()?, fields.u8()?];
        let table = fields.u8()?;
        let key_bytes = fields.len_upto(KEY_BYTES_MAX)?;
        let data_bytes = fields.len_upto(match change {
            Change::Put => VALUE_BYTES_MAX,
            Change::Delete => 0,
            Change::DeleteRange => KEY_BYTES_MAX,
        })?;
        let (key, data) = (fields.bytes(key_bytes)?, fields.bytes(data_bytes)?);
        match change {
            Change::DeleteRange => {
                let (start, end) = (edge_of(edges[0], key)?, edge_of(edges[1], data)?);
                let bounds = Bounds { start, end };
                Ok(Self::DeleteRange { table, bounds })
            }
            _ if edges != [0; 2] => Err(Violation::FieldValue),
            Change::Delete => Ok(Self::Delete { table, key }),
            Change::Put => Ok(Self::Put {
                table,
                key,
                value: data,
            }),
        }
    }
}

/// The changes as they stand in a write, checked; they are read where they stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Operations<'a> {
    count: u32,
    bytes: &'a [u8],
}

impl<'a> Operations<'a> {
    /// How many.
    pub const fn len(&self) -> usize {
        self.count as usize
    }

    /// Never, in a request.
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The changes, in their order: a later one of a key wins.
    pub fn iter(&self) -> impl Iterator<Item = Operation<'a>> + use<'a> {
        let mut fields = Fields::of(self.bytes);
        std::iter::from_fn(move || Operation::read(&mut fields).ok())
    }
}

/// The names of the tables of a write, 1 to 255 bytes without control characters each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Tables<'a> {
    count: u16,
    bytes: &'a [u8],
}

impl<'a> Tables<'a> {
    /// How many, 1 to [`TABLES_MAX`].
    pub const fn len(&self) -> usize {
        self.count as usize
    }

    /// Never: a write names a table.
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The names, that of number 0 first.
    pub fn iter(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        let mut fields = Fields::of(self.bytes);
        std::iter::from_fn(move || table(&mut fields).ok())
    }
}

/// The name of a table.
pub(crate) fn table<'a>(fields: &mut Fields<'a>) -> Result<&'a str, Violation> {
    match sized_text(fields, REGION_NAME_BYTES_MAX)? {
        "" => Err(Violation::FieldValue),
        name => Ok(name),
    }
}

/// Changes that the group carries out all or not at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Write<'a> {
    /// When it is answered.
    pub durability: Durability,
    /// The changes.
    pub operations: Operations<'a>,
    /// Their tables.
    pub tables: Tables<'a>,
}

impl<'a> Write<'a> {
    /// What follows the first byte of the body.
    pub(crate) fn read(mut fields: Fields<'a>) -> Result<Self, Violation> {
        let durability = Durability::of(fields.u8()?)?;
        let table_count = fields.u16()?;
        let count = fields.u32()?;
        let operations_bytes = fields.u32()? as usize;
        fields.zeroes::<4>()?;
        if !(1..=TABLES_MAX).contains(&table_count.into()) || count == 0 {
            return Err(Violation::Count);
        }
        let bytes = fields.bytes(operations_bytes)?;
        let mut check = Fields::of(bytes);
        for _ in 0..count {
            let operation = Operation::read(&mut check)?;
            if u16::from(operation.table()) >= table_count {
                return Err(Violation::FieldValue);
            }
        }
        check.end()?;
        let operations = Operations { count, bytes };
        let bytes = fields.peek();
        for _ in 0..table_count {
            table(&mut fields)?;
        }
        fields.end()?;
        let count = table_count;
        Ok(Self {
            durability,
            operations,
            tables: Tables { count, bytes },
        })
    }

    pub(crate) fn put(&self, to: &mut Vec<u8>) {
        put_front(to, self.durability, self.tables.count, &self.operations);
        to.extend_from_slice(self.operations.bytes);
        to.extend_from_slice(self.tables.bytes);
    }
}

/// The code of a write among requests.
pub(crate) const WRITE_CODE: u8 = 3;

fn put_front(to: &mut Vec<u8>, durability: Durability, tables: u16, operations: &Operations<'_>) {
    to.extend_from_slice(&[WRITE_CODE, durability as u8]);
    to.extend_from_slice(&tables.to_le_bytes());
    to.extend_from_slice(&operations.count.to_le_bytes());
    to.extend_from_slice(&(operations.bytes.len() as u64).to_le_bytes());
}

/// The body of a write while its changes are collected. Each value is copied once, to where it stays.
#[derive(Clone, Debug)]
pub struct WriteBody {
    /// Room for the fixed fields, and the changes.
    bytes: Vec<u8>,
    count: u32,
    tables: Vec<String>,
    /// Of the tables, encoded.
    tables_bytes: usize,
}

impl Default for WriteBody {
    fn default() -> Self {
        Self::new()
    }
}

impl WriteBody {
    /// Without changes.
    pub fn new() -> Self {
        Self::with_room(0)
    }

    /// Without changes, with room for this many bytes of them and their tables.
    pub fn with_room(bytes: usize) -> Self {
        let mut front = Vec::with_capacity(FRONT_BYTES + bytes);
        front.resize(FRONT_BYTES, 0);
        Self {
            bytes: front,
            count: 0,
            tables: Vec::new(),
            tables_bytes: 0,
        }
    }

    /// What [`finish`](Self::finish) was given, but for the durability. Changes are not copied.
    ///
    /// # Errors
    /// A violation if these bytes are no write.
    pub fn reopened(mut bytes: Vec<u8>) -> Result<Self, Violation> {
        let mut fields = Fields::of(&bytes);
        if fields.u8()? != WRITE_CODE {
            return Err(Violation::FieldValue);
        }
        let write = Write::read(fields)?;
        let (count, len_bytes) = (write.operations.count, write.operations.bytes.len());
        let (tables_bytes, named) = (write.tables.bytes.len(), write.tables.iter());
        let tables = named.map(str::to_owned).collect();
        bytes.truncate(FRONT_BYTES + len_bytes);
        Ok(Self {
            bytes,
            count,
            tables,
            tables_bytes,
        })
    }

    /// Adds a change: `key` gets `value`.
    ///
    /// # Errors
    /// `Count` for a name, key or value that is too long, and for one table more than [`TABLES_MAX`]; `FieldValue` for a
    /// name that is empty or has control characters; `TooLong` if a request has no room for it. Nothing was added then.
    pub fn put(&mut self, table: &str, key: &[u8], value: &[u8]) -> Result<(), Violation> {
        if value.len() > VALUE_BYTES_MAX {
            return Err(Violation::Count);
        }
        self.add(Change::Put, [0; 2], table, key, value)
    }

    /// Adds a change: `key` gets no value.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    pub fn delete(&mut self, table: &str, key: &[u8]) -> Result<(), Violation> {
        self.add(Change::Delete, [0; 2], table, key, &[])
    }

    /// Adds a change: no key within `bounds` has a value.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    pub fn delete_range(&mut self, table: &str, bounds: &Bounds<'_>) -> Result<(), Violation> {
        bounds.check()?;
        let edges = [code_of(bounds.start), code_of(bounds.end)];
        let (start, end) = (key_of(bounds.start), key_of(bounds.end));
        self.add(Change::DeleteRange, edges, table, start, end)
    }

    fn add(
        &mut self,
        change: Change,
        edges: [u8; 2],
        table: &str,
        key: &[u8],
        data: &[u8],
    ) -> Result<(), Violation> {
        if key.len() > KEY_BYTES_MAX {
            return Err(Violation::Count);
        }
        let table = self.number_of(table, CHANGE_BYTES + key.len() + data.len())?;
        self.bytes
            .extend_from_slice(&[change as u8, edges[0], edges[1], table]);
        self.bytes
            .extend_from_slice(&(key.len() as u32).to_le_bytes());
        self.bytes
            .extend_from_slice(&(data.len() as u32).to_le_bytes());
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(data);
        self.count += 1;
        Ok(())
    }

    /// The number of a table, which may be new, if there is room for `change_bytes` more.
    fn number_of(&mut self, table: &str, change_bytes: usize) -> Result<u8, Violation> {
        let known = self.tables.iter().position(|name| name == table);
        let name_bytes = match known {
            Some(_) => 0,
            None => 2 + table.len(),
        };
        if table.len() > REGION_NAME_BYTES_MAX {
            return Err(Violation::Count);
        }
        if table.is_empty() || table.chars().any(char::is_control) {
            return Err(Violation::FieldValue);
        }
        if self.len_bytes() + name_bytes + change_bytes > REQUEST_BYTES_MAX as usize {
            return Err(Violation::TooLong);
        }
        let number =
            u8::try_from(known.unwrap_or(self.tables.len())).map_err(|_| Violation::Count)?;
        if known.is_none() {
            self.tables.push(table.to_owned());
            self.tables_bytes += name_bytes;
        }
        Ok(number)
    }

    /// How many changes there are.
    pub const fn len(&self) -> usize {
        self.count as usize
    }

    /// Whether there are none; such a write is refused.
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Bytes of the body that [`finish`](Self::finish) makes of it.
    pub const fn len_bytes(&self) -> usize {
        self.bytes.len() + self.tables_bytes
    }

    /// The changes so far.
    pub fn operations(&self) -> Operations<'_> {
        Operations {
            count: self.count,
            bytes: self.bytes.get(FRONT_BYTES..).unwrap_or_default(),
        }
    }

    /// The table of this number.
    pub fn table(&self, number: u8) -> Option<&str> {
        self.tables.get(usize::from(number)).map(String::as_str)
    }

    /// The body.
    pub fn finish(mut self, durability: Durability) -> Vec<u8> {
        let mut front = Vec::with_capacity(FRONT_BYTES);
        put_front(
            &mut front,
            durability,
            self.tables.len() as u16,
            &self.operations(),
        );
        self.bytes[..FRONT_BYTES].copy_from_slice(&front);
        self.bytes.reserve_exact(self.tables_bytes);
        for table in &self.tables {
            put_sized(&mut self.bytes, table.as_bytes());
        }
        self.bytes
    }
}
