//! Members are brought to one state before an opening: slots by control messages, log by the streams of the new term.
//!
//! 1. The candidate sends the superblock, and writes its own slots; each member does likewise and says what it has then.
//! 2. The candidate opens a stream to each, sends the log that is missing, and waits until it is durable.

use std::sync::Arc;

use kreon_base::{Error, Lsn, PageBytes, Result};
use kreon_device::Device;
use kreon_engine::{Examined, Superblock};
use kreon_format::{FORMAT_VERSION, LOG_HEADER_BYTES, StoreId, lsn_at};
use kreon_wire::limits::BLOCK_BYTES;
use kreon_wire::{Control, Equalise, Extent, Member, Open, Room, Superblocks, Term};

use super::group::{Core, Group};
use super::of_replica::extent_of;
use crate::equalise::{LogGap, Primary as Store, extent_of as extent_in, repair_slots, ship_gap};
use crate::machine::replica::{Event, State};
use crate::machine::{Configuration, Report, SlotMark};
use crate::mirror::{Carrier, Mirror};

/// What a file has.
#[derive(Clone, Debug)]
pub(super) struct Found {
    /// None: no store.
    pub examined: Option<Examined>,
    pub report: Report,
}

impl Found {
    pub fn of(examined: Option<Examined>) -> Self {
        let report = match &examined {
            Some(examined) => {
                let Extent { slot, log_end } = extent_in(examined);
                let slot = SlotMark {
                    incarnation: slot.incarnation,
                    epoch: slot.epoch,
                };
                Report { slot, log_end }
            }
            // Where the log of a new store begins.
            None => Report {
                slot: SlotMark::default(),
                log_end: lsn_at(1, LOG_HEADER_BYTES),
            },
        };
        Self { examined, report }
    }

    /// Its superblock, if it is this one; none for no store, if that is what is asked for.
    fn superblock(&self, mark: SlotMark) -> Result<Option<Superblock>> {
        match &self.examined {
            _ if self.report.slot != mark => Err(Error::invalid(format!(
                "the superblock {mark:?} is to be everywhere, but here is {:?}",
                self.report.slot
            ))),
            Some(examined) => Ok(Some(examined.superblock)),
            None => Ok(None),
        }
    }
}

/// A primary that does not serve yet.
pub(super) struct Candidate {
    pub term: Term,
    /// Its streams; none before its own slots are written.
    pub mirror: Option<Arc<Mirror>>,
    /// Length of its volume.
    pub volume_bytes: u64,
    /// Members that have the superblock, and whether their stream was asked for.
    pub told: Vec<(Member, Lsn, bool)>,
    /// The open store.
    pub store: Option<Arc<Store>>,
    /// Its number.
    pub store_id: StoreId,
}

/// What a candidate wants to have at a member.
pub(super) struct Package {
    pub term: Term,
    pub superblock: Option<Superblock>,
    /// Where the log is to end.
    pub log_end: Lsn,
}

impl Package {
    /// What a candidate has sent.
    pub fn of(term: Term, equalise: &Equalise) -> Self {
        let pages = equalise.superblocks.as_ref();
        let page = pages.and_then(|pages| pages.page(0)?.try_into().ok());
        let decoded = page.and_then(|page: &PageBytes| Superblock::decode(page, 0).ok());
        Self {
            term,
            superblock: decoded,
            log_end: equalise.extent.log_end,
        }
    }
}

fn mark_of(superblock: &Superblock) -> SlotMark {
    SlotMark {
        incarnation: superblock.incarnation,
        epoch: superblock.epoch,
    }
}

/// The bytes of a configuration that a message has; none if no node can hold it.
pub(super) fn opening(
    group: &Group,
    config: &Configuration,
    (store, volume_bytes): (StoreId, u64),
) -> Option<Open> {
    let config = config.to_node(group.id()).ok()?;
    Some(Open {
        store,
        volume_bytes: volume_bytes - volume_bytes % BLOCK_BYTES,
        format: FORMAT_VERSION,
        config,
    })
}

/// Whether two files are known to be of two stores.
pub(super) fn is_other(one: Option<StoreId>, other: Option<StoreId>) -> bool {
    one.zip(other).is_some_and(|(one, other)| one != other)
}

impl Core {
    /// The store that the file here was found to have.
    pub(super) fn store(&self) -> Option<StoreId> {
        let examined = self.found.as_ref()?.examined.as_ref();
        examined.map(|examined| examined.superblock.store)
    }
}

impl Group {
    /// As a candidate: sends a member the superblock that all are to have.
    pub(super) fn send_state(&self, core: &mut Core, to: Member, term: Term, chosen: Report) {
        let found = core
            .found
            .as_ref()
            .map(|found| found.superblock(chosen.slot));
        let superblocks = match found {
            Some(Ok(superblock)) => superblock.as_ref().and_then(pages),
            Some(Err(error)) => {
                // Another member had it, which the master did not know.
                return self.give_up(core, term, &error, "the members cannot be made equal");
            }
            None => return,
        };
        let extent = extent_of(&chosen);
        let equalise = Equalise {
            extent,
            superblocks,
        };
        self.ask(core, to, term, &Control::Equalise(equalise));
    }

    /// As a candidate: writes its own slots; then the streams can begin.
    pub(super) fn repair_own(&self, core: &mut Core, term: Term, slots: Option<SlotMark>) {
        let found = core.found.clone();
        core.candidate = Some(Candidate {
            term,
            mirror: None,
            volume_bytes: 0,
            told: Vec::new(),
            store: None,
            store_id: StoreId::default(),
        });
        self.work(Box::new(move |group, files| {
            let repaired = files.device(group).and_then(|device| {
                let found = found.ok_or_else(|| Error::invalid("the end was not computed"))?;
                let superblock = slots.map(|mark| found.superblock(mark)).transpose()?;
                let found = repair(&device, superblock.flatten(), found)?;
                Ok((found, device.len_bytes()))
            });
            let mut core = group.core();
            let candidate = core.candidate.as_mut();
            match (repaired, candidate.filter(|held| held.term == term)) {
                (Ok((found, volume_bytes)), Some(candidate)) => {
                    let end = found.report.log_end;
                    candidate.mirror = Some(Mirror::new(group.id(), term, end));
                    candidate.volume_bytes = volume_bytes;
                    core.found = Some(found);
                    group.replica(&mut core, Event::Repaired(term));
                    group.ask_for_streams(&mut core);
                }
                (Err(error), _) => {
                    group.give_up(&mut core, term, &error, "the slots here cannot be written");
                }
                (Ok(_), None) => {}
            }
        }));
    }

    /// As a member: takes over the superblock of a candidate. The log follows by the stream.
    pub(super) fn repair_for(
        &self,
        core: &mut Core,
        term: Term,
        slots: Option<SlotMark>,
        log_end: Lsn,
    ) {
        let package = core.package.take().filter(|package| package.term == term);
        let found = core.found.clone();
        self.work(Box::new(move |group, files| {
            let repaired = files.device(group).and_then(|device| {
                let found = found.ok_or_else(|| Error::invalid("the end was not computed"))?;
                let sent = package.as_ref().and_then(|package| package.superblock);
                let superblock = match slots {
                    None => None,
                    Some(mark) => match sent.filter(|sent| mark_of(sent) == mark) {
                        Some(sent) => Some(sent),
                        None => found.superblock(mark)?,
                    },
                };
                repair(&device, superblock, found)
            });
            let mut core = group.core();
            match repaired {
                Ok(found) => {
                    core.found = Some(found);
                    core.package = Some(Package {
                        term,
                        superblock: None,
                        log_end,
                    });
                    group.replica(&mut core, Event::Repaired(term));
                }
                Err(error) => {
                    group.fail(
                        &mut core,
                        &error,
                        "a candidate's state cannot be taken over",
                    );
                }
            }
        }));
    }

    /// A member has the superblock, and its log ends here.
    pub(super) fn on_equal(&self, core: &mut Core, from: Member, term: Term, end: Lsn) {
        let candidate = core.candidate.as_mut();
        if let Some(candidate) = candidate.filter(|held| held.term == term) {
            if !candidate.told.iter().any(|(member, ..)| *member == from) {
                candidate.told.push((from, end, false));
            }
            self.ask_for_streams(core);
        }
    }

    /// As a candidate: opens the streams that can be opened.
    fn ask_for_streams(&self, core: &mut Core) {
        let State::Equalising(office) = core.replica.state() else {
            return;
        };
        let config = office.known.config.clone();
        let Some(candidate) = &mut core.candidate else {
            return;
        };
        if candidate.mirror.is_none() {
            return;
        }
        let (term, volume_bytes) = (candidate.term, candidate.volume_bytes);
        let mut members = Vec::new();
        for (member, _, is_asked) in &mut candidate.told {
            if !std::mem::replace(is_asked, true) {
                members.push(*member);
            }
        }
        let store = core.store().unwrap_or_default();
        let Some(open) = opening(self, &config, (store, volume_bytes)) else {
            return;
        };
        for member in members {
            self.ask(core, member, term, &Control::Open(open.clone()));
        }
    }

    /// A member expects the stream: it gets the log that it lacks.
    pub(super) fn on_opened(&self, core: &mut Core, from: Member, term: Term, room: Room) {
        let Some(candidate) = core.candidate.as_ref().filter(|held| held.term == term) else {
            return;
        };
        let told = candidate.told.iter().find(|(member, ..)| *member == from);
        let (Some((_, end, _)), Some(mirror)) = (told.copied(), candidate.mirror.clone()) else {
            return;
        };
        let examined = core.found.as_ref().and_then(|found| found.examined.clone());
        self.work(Box::new(move |group, files| {
            let fed = files.device(group).and_then(|device| {
                let wire = group.links.stream_to(from)?;
                let have = examined.as_ref().map_or(end, |own| end.min(own.log_end));
                mirror.add(from, wire as Arc<dyn Carrier>, have, room)?;
                if let Some(examined) = &examined {
                    let gap = LogGap::between(examined, end);
                    ship_gap(&mirror, from, &*device, &gap)?;
                }
                mirror.flush_member(from)
            });
            let event = match fed {
                Ok(()) => Event::Equal { from, term },
                Err(error) => {
                    tracing::warn!(%error, ?from, "a member cannot be made equal");
                    Event::Failed(from)
                }
            };
            group.replica(&mut group.core(), event);
        }));
    }
}

/// Writes a superblock into all slots, if there is one; what the file has then.
fn repair(device: &Arc<dyn Device>, superblock: Option<Superblock>, found: Found) -> Result<Found> {
    let Some(superblock) = superblock else {
        return Ok(found);
    };
    repair_slots(&**device, &superblock)?;
    // The end of the log is that under a superblock: under the same one it is known.
    match mark_of(&superblock) == found.report.slot {
        true => Ok(found),
        false => Found::in_file(device, None),
    }
}

/// The pages of all slots with this superblock.
fn pages(superblock: &Superblock) -> Option<Superblocks> {
    let pages: Vec<u8> = (0..4)
        .flat_map(|slot| superblock.encode(slot).to_vec())
        .collect();
    Superblocks::of(&pages).ok()
}
