//! The chain of a key's versions, newest first: iteration and insertion.
//!
//! Invariants: LSNs strictly fall along the chain at any time, for every reader. A version removed from the chain keeps
//! its own link, so a reader on it can go on.

use std::borrow::Cow;
use std::cmp::Ordering;

use kreon_base::{Lsn, Payload};

use crate::arena::{Arena, AtomicTagged, Ref, Tagged};
use crate::latch::Backoff;
use crate::record::{HeldRecord, Newest, Record, Retained, ValuePlace, Where, attribute_bytes};
use crate::version::{Keep, Version};

/// The versions of one key, newest first, as of the call that returned this iterator.
pub struct Versions<'a> {
    arena: &'a Arena,
    newest: Option<Version<'a>>,
    /// The record, which holds values placed behind its key, and the next version to visit.
    rest: Option<(Ref<Record>, Ref<Retained>)>,
}

impl<'a> Versions<'a> {
    /// The versions of `record`.
    pub(crate) fn of(arena: &'a Arena, record: Ref<Record>) -> Self {
        let newest = arena.get(record).read();
        let inside = (newest.place.at() != Where::Retained).then(|| {
            let inline = arena.second(record);
            newest.place.version(newest.lsn, newest.link.tag, inline)
        });
        Self {
            arena,
            newest: inside,
            rest: newest.link.to.map(|older| (record, older)),
        }
    }

    /// No versions.
    pub(crate) fn none(arena: &'a Arena) -> Self {
        Self {
            arena,
            newest: None,
            rest: None,
        }
    }
}

impl<'a> Iterator for Versions<'a> {
    type Item = Version<'a>;

    fn next(&mut self) -> Option<Version<'a>> {
        if let Some(newest) = self.newest.take() {
            return Some(newest);
        }
        let (record, at) = self.rest?;
        let version = self.arena.get(at);
        let Tagged { tag, to } = version.link.load();
        self.rest = to.map(|older| (record, older));
        let inline = match version.place.at() {
            Where::Record => self.arena.second(record),
            _ => self.arena.second(at),
        };
        Some(version.place.version(version.lsn, tag, inline))
    }
}

/// A version to add.
#[derive(Clone, Copy)]
pub(crate) struct NewVersion<'a> {
    pub lsn: Lsn,
    pub payload: Payload<'a>,
    pub keep: Keep,
}

impl NewVersion<'_> {
    /// Puts a record for a new key into the arena, with this as its only version.
    pub(crate) fn put_record(&self, arena: &Arena, key: &[u8]) -> Ref<Record> {
        let place = self.place(Where::Record);
        let newest = Newest {
            lsn: self.lsn.0,
            place,
            link: self.link_to(None),
        };
        arena.put(Record::new(newest), key, &self.inline())
    }

    /// Puts the version outside a record into the arena, not linked to older versions yet.
    fn put_retained(&self, arena: &Arena) -> Ref<Retained> {
        let version = Retained {
            lsn: self.lsn.0,
            place: self.place(Where::Retained),
            link: AtomicTagged::new(self.link_to(None)),
        };
        arena.put(version, &[], &self.inline())
    }

    fn place(&self, inline: Where) -> ValuePlace {
        ValuePlace::of(&self.payload, inline, self.keep.unit_pending)
    }

    fn link_to(&self, to: Option<Ref<Retained>>) -> Tagged<Retained> {
        let tag = match self.payload {
            Payload::Logged { value_bytes, .. } => value_bytes,
            Payload::Inline { value, .. } => value.len() as u32,
            Payload::Tombstone { .. } | Payload::Erased { .. } => 0,
        };
        Tagged { tag, to }
    }

    fn in_log(&self) -> bool {
        !matches!(self.payload, Payload::Inline { .. })
    }

    /// Whether it cannot be in a record that has a version: readers may borrow the bytes of that.
    fn is_outside(&self) -> bool {
        !self.in_log() || !self.payload.attributes().is_none()
    }

    /// What stands behind it in the arena: attributes, inline value.
    fn inline(&self) -> Cow<'_, [u8]> {
        let value = match self.payload {
            Payload::Inline { value, .. } => value,
            _ => &[],
        };
        match self.payload.attributes() {
            attributes if attributes.is_none() => Cow::Borrowed(value),
            attributes => Cow::Owned([&attribute_bytes(attributes), value].concat()),
        }
    }
}

/// Adds a version to a key with a record.
pub(crate) fn add(arena: &Arena, record: Ref<Record>, write: &NewVersion<'_>) {
    let mut pause = Backoff::default();
    loop {
        let newest = arena.get(record).read();
        let attempt = ChainUpdate {
            arena,
            record,
            newest,
            write,
        };
        let done = match write.lsn.0.cmp(&newest.lsn) {
            Ordering::Greater => attempt.on_top(),
            Ordering::Equal => attempt.moved(),
            Ordering::Less => attempt.beneath(),
        };
        if done.is_some() {
            return;
        }
        pause.wait();
    }
}

/// One attempt to add a version to a record in a known state; `None` if the record has changed since. Memory is
/// allocated before the record's latch is taken, which is then held only for a few stores.
struct ChainUpdate<'a> {
    arena: &'a Arena,
    record: Ref<Record>,
    newest: Newest,
    write: &'a NewVersion<'a>,
}

impl ChainUpdate<'_> {
    /// Adds the write as the newest version.
    fn on_top(&self) -> Option<()> {
        let Self { arena, write, .. } = *self;
        let retained = write.keep.retains(self.newest.lsn).then(|| self.retained());
        let outside = write.is_outside().then(|| write.put_retained(arena));
        let held = self.hold()?;
        let beneath = retained.or_else(|| self.first_kept(self.second_newest()));
        if let Some(outside) = outside {
            arena.get(outside).link.store(write.link_to(beneath));
        }
        let place = match outside {
            Some(_) => ValuePlace::new(Where::Retained, write.keep.unit_pending),
            None => write.place(Where::Retained),
        };
        held.publish(Newest {
            lsn: write.lsn.0,
            place,
            link: write.link_to(outside.or(beneath)),
        });
        Some(())
    }

    /// Replaces the offset of the newest version, which has this LSN already: its log record was moved. An inline value
    /// stays, as it cannot differ.
    fn moved(&self) -> Option<()> {
        if !self.write.in_log() {
            return Some(());
        }
        if let Some(outside) = self.newest.retained() {
            if self.arena.get(outside).place.in_log() {
                self.replace_outside()?;
            }
        } else if self.newest.place.in_log()
            && self.newest.place.has_attributes() != self.write.is_outside()
        {
            debug_assert!(false, "a moved record has the attributes that it had");
        } else if self.newest.place.in_log() {
            let place = self.write.place(Where::Retained);
            // Only the place changes: with an equal LSN a reader could not detect a change of two words.
            self.hold()?.publish(Newest {
                place,
                ..self.newest
            });
        }
        Some(())
    }

    /// The same of a newest version outside the record. Only the link changes.
    fn replace_outside(&self) -> Option<()> {
        let own = self.write.put_retained(self.arena);
        let held = self.hold()?;
        let beneath = self.second_newest();
        self.arena.get(own).link.store(self.write.link_to(beneath));
        held.publish(Newest {
            link: self.write.link_to(Some(own)),
            ..self.newest
        });
        Some(())
    }

    /// Adds the write beneath the newest version, or drops it if no reader can see it.
    fn beneath(&self) -> Option<()> {
        let Self { arena, write, .. } = *self;
        let seen_by_snapshot = write.keep.snapshot_sees(write.lsn.0);
        let mut hidden = !self.newest.place.pending() && !seen_by_snapshot;
        if hidden {
            return Some(());
        }
        let own = write.put_retained(arena);
        let held = self.hold()?;
        let mut above = self.newest.retained();
        let mut next = self.second_newest();
        while let Some(at) = next {
            let version = arena.get(at);
            if version.lsn <= write.lsn.0 {
                break;
            }
            hidden |= !version.place.pending() && !seen_by_snapshot;
            above = next;
            next = version.link.load().to;
        }
        let same = next
            .map(|at| arena.get(at))
            .filter(|version| version.lsn == write.lsn.0);
        let below = match same {
            Some(same) if same.place.in_log() && write.in_log() => same.link.load().to,
            None if !hidden => self.first_kept(next),
            _ => return Some(()),
        };
        arena.get(own).link.store(write.link_to(below));
        self.link(held, above, own);
        Some(())
    }

    /// Links `own` as the version beneath `above`, or beneath the one in the record.
    fn link(&self, held: HeldRecord<'_>, above: Option<Ref<Retained>>, own: Ref<Retained>) {
        let to = Some(own);
        match above {
            Some(above) => {
                let link = &self.arena.get(above).link;
                let tag = link.load().tag;
                link.store(Tagged { tag, to });
            }
            None => {
                let tag = self.newest.link.tag;
                held.publish(Newest {
                    link: Tagged { tag, to },
                    ..self.newest
                });
            }
        }
    }

    fn hold(&self) -> Option<HeldRecord<'_>> {
        self.arena.get(self.record).hold(&self.newest)
    }

    /// The newest version as one outside the record. If it hides the versions beneath it, its copy links only to those
    /// that a snapshot sees, so that chains of keys that only batches write stay short.
    ///
    /// The link of an existing version outside the record is not shortened: a reader that found it pending may stand on
    /// it and go on to the versions beneath.
    fn retained(&self) -> Ref<Retained> {
        let Newest { lsn, place, link } = self.newest;
        let keep = self.write.keep;
        self.newest.retained().unwrap_or_else(|| {
            let to = match keep.hides_older(lsn, place.pending()) {
                true => self.first(link.to, |lsn| keep.snapshot_sees(lsn)),
                false => link.to,
            };
            let link = AtomicTagged::new(Tagged { to, ..link });
            // Of a logged value they alone stand behind the key, and those of an inline value stay there.
            let attributes = match place.at() {
                Where::Logged(_) if place.has_attributes() => self.arena.second(self.record),
                _ => &[],
            };
            self.arena
                .put(Retained { lsn, place, link }, &[], attributes)
        })
    }

    /// The version beneath the newest.
    fn second_newest(&self) -> Option<Ref<Retained>> {
        match self.newest.retained() {
            Some(newest) => self.arena.get(newest).link.load().to,
            None => self.newest.link.to,
        }
    }

    /// The newest version from `from` down that must stay. All versions beneath it stay as well: older snapshots may
    /// see them, and the caller names only the newest snapshot.
    fn first_kept(&self, from: Option<Ref<Retained>>) -> Option<Ref<Retained>> {
        self.first(from, |lsn| self.write.keep.retains(lsn))
    }

    /// The newest version from `from` down whose LSN is `kept`.
    fn first(
        &self,
        from: Option<Ref<Retained>>,
        kept: impl Fn(u64) -> bool,
    ) -> Option<Ref<Retained>> {
        let mut next = from;
        // Avoids a walk to the end of a long chain with the record's latch held.
        if !kept(0) {
            return None;
        }
        while let Some(at) = next {
            let version = self.arena.get(at);
            if kept(version.lsn) {
                break;
            }
            next = version.link.load().to;
        }
        next
    }
}

#[cfg(test)]
mod tests {
    use kreon_base::LogOffset;

    use super::*;
    use crate::arena::Pool;

    fn write(lsn: u64) -> NewVersion<'static> {
        NewVersion {
            lsn: Lsn(lsn),
            payload: Payload::Tombstone {
                offset: LogOffset(lsn * 8),
            },
            keep: Keep {
                snapshot_max: None,
                unit_pending: true,
                ..Keep::default()
            },
        }
    }

    fn lsns(arena: &Arena, record: Ref<Record>) -> Vec<u64> {
        Versions::of(arena, record).map(|v| v.lsn.0).collect()
    }

    #[test]
    fn an_attempt_fails_once_another_changed_the_chain() {
        let arena = Arena::new(Pool::new(0));
        let record = write(5).put_record(&arena, b"key");
        // A change of the newest version, and a change of only the link beneath it.
        for (other, before) in [(3, vec![5, 3]), (7, vec![7, 5, 3])] {
            let newest = arena.get(record).read();
            add(&arena, record, &write(other));
            for late in [4, newest.lsn, 8] {
                let attempt = ChainUpdate {
                    arena: &arena,
                    record,
                    newest,
                    write: &write(late),
                };
                let done = match late.cmp(&newest.lsn) {
                    Ordering::Greater => attempt.on_top(),
                    Ordering::Equal => attempt.moved(),
                    Ordering::Less => attempt.beneath(),
                };
                assert!(done.is_none(), "{late} after {other}");
                assert_eq!(lsns(&arena, record), before);
            }
        }
        for late in [4, 8] {
            add(&arena, record, &write(late));
        }
        assert_eq!(lsns(&arena, record), [8, 7, 5, 4, 3]);
    }
}
