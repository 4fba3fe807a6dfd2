//! Collections: a head, and elements that are records of their own.

use bytes::Bytes;
use kreon::Value;

use super::access::Access;
use super::failure::Failure;
use super::records::{
    COLLECTION, Head, Kind, STRING, Text, begin_text, element_key, expiry_key, prefix_end,
    record_key,
};
use super::span::Span;
use crate::reply::CommandError;

/// The error of a command on a key of another type.
pub(crate) const WRONG_TYPE: CommandError =
    CommandError::new("WRONGTYPE Operation against a key holding the wrong kind of value");

/// A collection that a command works on.
#[derive(Clone, Debug)]
pub(crate) struct Collection {
    pub db: usize,
    pub key: Bytes,
    pub head: Head,
}

/// What stands at a key.
#[derive(Debug)]
pub(crate) enum Item {
    Text(Text),
    Collection(Collection),
}

impl Item {
    pub(crate) fn is_text(&self) -> bool {
        matches!(self, Self::Text(_))
    }

    pub(crate) fn into_text(self) -> Option<Text> {
        match self {
            Self::Text(text) => Some(text),
            Self::Collection(_) => None,
        }
    }

    pub(crate) fn deadline_ms(&self) -> Option<u64> {
        match self {
            Self::Text(text) => text.deadline_ms,
            Self::Collection(collection) => collection.head.deadline_ms,
        }
    }
}

impl Access<'_> {
    /// The string at `key` of the selected database.
    ///
    /// # Errors
    /// [`WRONG_TYPE`] for a collection.
    pub(crate) fn text(&mut self, key: &Bytes) -> Result<Option<Text>, Failure> {
        match self.text_record(self.db, key)? {
            Some(text) => Ok(Some(text)),
            None if self.head(self.db, key)?.is_some() => Err(WRONG_TYPE.into()),
            None => Ok(None),
        }
    }

    /// The collection at `key` of the selected database.
    ///
    /// # Errors
    /// [`WRONG_TYPE`] for anything else than a collection of `kind`.
    pub(crate) fn collection(
        &mut self,
        key: &Bytes,
        kind: Kind,
    ) -> Result<Option<Collection>, Failure> {
        let db = self.db;
        match self.head(db, key)? {
            Some(head) if head.kind == kind => Ok(Some(Collection {
                db,
                key: key.clone(),
                head,
            })),
            Some(_) => Err(WRONG_TYPE.into()),
            None if self.contains(db, &record_key(STRING, key))? => Err(WRONG_TYPE.into()),
            None => Ok(None),
        }
    }

    /// The collection at `key`, or a new one that is kept if it gets elements.
    ///
    /// # Errors
    /// As [`collection`](Self::collection).
    pub(crate) fn collection_or_new(
        &mut self,
        key: &Bytes,
        kind: Kind,
    ) -> Result<Collection, Failure> {
        if let Some(collection) = self.collection(key, kind)? {
            return Ok(collection);
        }
        let head = Head {
            kind,
            id: self.keyspace().ids().next()?,
            deadline_ms: None,
            first: 0,
            len: 0,
        };
        let (db, key) = (self.db, key.clone());
        Ok(Collection { db, key, head })
    }

    /// Whatever stands at `key`.
    pub(crate) fn item(&mut self, db: usize, key: &Bytes) -> Result<Option<Item>, Failure> {
        if let Some(text) = self.text_record(db, key)? {
            return Ok(Some(Item::Text(text)));
        }
        let key = key.clone();
        let head = self.head(db, &key)?;
        Ok(head.map(|head| Item::Collection(Collection { db, key, head })))
    }

    /// Whether anything stands at `key`. Reads no value.
    pub(crate) fn exists(&mut self, db: usize, key: &Bytes) -> Result<bool, Failure> {
        Ok(self.contains(db, &record_key(STRING, key))? || self.head(db, key)?.is_some())
    }

    fn text_record(&mut self, db: usize, key: &[u8]) -> Result<Option<Text>, Failure> {
        let record = self.get(db, &record_key(STRING, key))?;
        let text = record.map(|record| Text::decode(record).ok_or_else(|| damaged(key)));
        text.transpose()
    }

    /// The head of the collection at `key`; never read where there are no collections.
    pub(crate) fn head(&mut self, db: usize, key: &[u8]) -> Result<Option<Head>, Failure> {
        if !self.keyspace().database(db)?.has_collections() {
            return Ok(None);
        }
        let record = self.get(db, &record_key(COLLECTION, key))?;
        let head = record.map(|record| Head::decode(&record).ok_or_else(|| damaged(key)));
        head.transpose()
    }

    /// Sets a string, over whatever stands at `key`. `parts` are put together.
    pub(crate) fn put_text(
        &mut self,
        db: usize,
        key: &Bytes,
        parts: &[&[u8]],
        deadline_ms: Option<u64>,
    ) -> Result<(), Failure> {
        if let Some(head) = self.head(db, key)? {
            let key = key.clone();
            self.drop_collection(&Collection { db, key, head });
        }
        self.write_text(db, key, parts, deadline_ms)
    }

    /// As [`put_text`](Self::put_text), where no collection stands.
    pub(crate) fn write_text(
        &mut self,
        db: usize,
        key: &Bytes,
        parts: &[&[u8]],
        deadline_ms: Option<u64>,
    ) -> Result<(), Failure> {
        let bytes = parts.iter().map(|part| part.len()).sum::<usize>();
        let mut record = Vec::with_capacity(bytes + 9);
        begin_text(&mut record, deadline_ms);
        for part in parts {
            record.extend_from_slice(part);
        }
        self.put(db, record_key(STRING, key), record, deadline_ms)?;
        self.touch((db, key.clone()));
        Ok(())
    }

    /// Deletes whatever stands at `key`; `false` if nothing does.
    pub(crate) fn remove(&mut self, db: usize, key: &Bytes) -> Result<bool, Failure> {
        if self.contains(db, &record_key(STRING, key))? {
            self.delete(db, record_key(STRING, key));
            self.touch((db, key.clone()));
            return Ok(true);
        }
        let Some(head) = self.head(db, key)? else {
            return Ok(false);
        };
        let key = key.clone();
        self.drop_collection(&Collection { db, key, head });
        Ok(true)
    }

    /// Deletes a collection with its elements: a few writes, however large it is.
    pub(crate) fn drop_collection(&mut self, collection: &Collection) {
        self.drop_head(collection);
        let start = element_key(collection.head.id, &[]);
        if let Some(end) = prefix_end(&start) {
            self.delete_range(collection.db, start, end);
        }
    }

    /// Deletes the head of a collection, and leaves the elements to another head.
    pub(crate) fn drop_head(&mut self, collection: &Collection) {
        let Collection { db, key, head } = collection;
        self.delete(*db, record_key(COLLECTION, key));
        if let Some(deadline_ms) = head.deadline_ms {
            self.delete(*db, expiry_key(deadline_ms, head.id));
        }
        self.touch((*db, key.clone()));
    }

    /// Writes the head of a collection, with its place in the index of deadlines. Without elements it is deleted.
    pub(crate) fn save(&mut self, collection: &Collection) -> Result<(), Failure> {
        let Collection { db, key, head } = collection;
        if head.len == 0 {
            self.drop_head(collection);
            return Ok(());
        }
        self.keyspace().database(*db)?.expect_collections();
        let record = record_key(COLLECTION, key);
        self.put(*db, record, head.encode(), head.deadline_ms)?;
        self.touch((*db, key.clone()));
        Ok(())
    }

    /// Gives a collection another deadline, or none. Its head is written.
    pub(crate) fn save_deadline(
        &mut self,
        collection: &mut Collection,
        deadline_ms: Option<u64>,
    ) -> Result<(), Failure> {
        let id = collection.head.id;
        if let Some(before) = collection.head.deadline_ms {
            self.delete(collection.db, expiry_key(before, id));
        }
        if let Some(deadline_ms) = deadline_ms {
            let key = collection.key.to_vec();
            self.put(collection.db, expiry_key(deadline_ms, id), key, None)?;
        }
        collection.head.deadline_ms = deadline_ms;
        self.save(collection)
    }

    /// The element with this rest.
    pub(crate) fn element(
        &mut self,
        collection: &Collection,
        rest: &[&[u8]],
    ) -> Result<Option<Value>, Failure> {
        self.get(collection.db, &element_key(collection.head.id, rest))
    }

    /// Whether there is an element with this rest.
    pub(crate) fn has_element(
        &mut self,
        collection: &Collection,
        rest: &[&[u8]],
    ) -> Result<bool, Failure> {
        self.contains(collection.db, &element_key(collection.head.id, rest))
    }

    /// Sets an element; whether it is new.
    pub(crate) fn set_element(
        &mut self,
        collection: &Collection,
        rest: &[u8],
        value: &[u8],
    ) -> Result<bool, Failure> {
        let key = element_key(collection.head.id, &[rest]);
        let is_new = !self.contains(collection.db, &key)?;
        self.put(collection.db, key, value.to_vec(), None)?;
        self.touch((collection.db, collection.key.clone()));
        Ok(is_new)
    }

    pub(crate) fn put_element(
        &mut self,
        collection: &Collection,
        rest: &[&[u8]],
        value: &[u8],
    ) -> Result<(), Failure> {
        let key = element_key(collection.head.id, rest);
        self.put(collection.db, key, value.to_vec(), None)?;
        self.touch((collection.db, collection.key.clone()));
        Ok(())
    }

    pub(crate) fn delete_element(&mut self, collection: &Collection, rest: &[&[u8]]) {
        self.delete(collection.db, element_key(collection.head.id, rest));
        self.touch((collection.db, collection.key.clone()));
    }
}

impl Collection {
    /// Its elements whose rest begins with `prefix`.
    pub(crate) fn elements(&self, prefix: &[u8]) -> Span {
        Span::prefix(self.db, &element_key(self.head.id, &[prefix]))
    }
}

fn damaged(key: &[u8]) -> Failure {
    let text = format!(
        "the record of key \"{}\" is none of Redis' types",
        key.escape_ascii()
    );
    kreon::Error::corruption(text).into()
}
