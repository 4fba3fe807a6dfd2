//! What the machine of a replica wants done.

use std::sync::Arc;

use kreon_base::Lsn;
use kreon_wire::{Control, Extent, Kind, Member, Reason, Refused, ServerId, Slot, Stage, Standing};

use super::asking::Asker;
use super::equalising::Found;
use super::group::{Core, Group};
use super::worker::Job;
use crate::equalise::examine;
use crate::machine::primary::Phase;
use crate::machine::replica::{Action, Event, Mate, State};
use crate::machine::{Report, SlotMark, Term};

/// A candidate waits for a member without a session for this part of [`Timing::silence_us`](crate::machine::Timing).
const NO_SESSION_PATIENCE: u64 = 8;

impl Group {
    pub(super) fn do_for_replica(&self, core: &mut Core, action: Action) {
        match action {
            Action::Ask(ticket, ask) => self.asking.ask(Asker::Replica(self.id()), ticket, &ask),
            Action::Persist(stamp) => self.keep(core, stamp),
            Action::Abandon => self.abandon(core, "a later term has begun"),
            Action::Drain => self.work(drain()),
            Action::ComputeEnd(term) => self.work(compute_end(term)),
            Action::Report { to, term, report } => self.report(core, (to, term), &report),
            Action::Seal { to, term } => self.ask(core, to, term, &Control::Seal),
            Action::Equalise {
                to,
                term,
                top,
                log_end,
            } => {
                let chosen = Report { slot: top, log_end };
                self.send_state(core, to, term, chosen);
            }
            Action::Repair {
                from,
                term,
                slots,
                log_end,
            } => match from {
                None => self.repair_own(core, term, slots),
                Some(_) => self.repair_for(core, term, slots, log_end),
            },
            Action::Equal { to, term } => {
                if let Some(found) = &core.found {
                    let extent = extent_of(&found.report);
                    self.ask(core, to, term, &Control::Equal { extent });
                }
            }
            Action::Open(term) => {
                tracing::info!(group = self.id().0, term = term.0, "all members are equal");
                self.note(|moments, now_us| moments.equal_us = now_us);
                self.open(term);
            }
            Action::Serve { known, since } => self.serve(core, known, since),
            Action::AskAttach { to, term } => {
                let standing = self.standing(core);
                self.ask(core, to, term, &Control::Standing(standing));
            }
            Action::Close(member) => self.close_for_candidate(core, member),
            Action::StopFollowing => self.stop_following(core),
            Action::Beaten { to, term, beat } => {
                core.heard_at = self.now();
                let free_bytes = core.free_bytes.0.unwrap_or(u64::MAX);
                self.tell(to, (term, beat.0), &Control::Beaten { free_bytes });
            }
            Action::Refuse { to, promised } => self.refuse_term(core, to, promised),
        }
    }

    /// Asks the device for its free bytes a few times a second: beats come with every read, and that is a call of the system.
    pub(super) fn look_at_space(&self, core: &mut Core) {
        let now = self.now();
        if now.since_us(core.free_bytes.1) >= self.settings.timing.beat_every_us {
            // Without a lock that anybody holds while it writes.
            let free_bytes = core.following.as_ref().and_then(|f| f.device.free_bytes());
            core.free_bytes = (free_bytes, now);
        }
    }

    fn report(&self, core: &mut Core, (to, term): (ServerId, Term), report: &Report) {
        // What a file has that failed is not known.
        let is_doubtful = core.has_failed || core.unkept.is_some();
        // Another one may be able to open its store.
        let has_given_up = self.now() < core.given_up.1;
        if is_doubtful || has_given_up {
            return;
        }
        let number = core.seals.remove(&to).unwrap_or(1);
        let (process, extent) = (self.me.process, extent_of(report));
        self.tell_server(to, (term, number), &Control::Sealed { process, extent });
    }

    fn close_for_candidate(&self, core: &mut Core, member: Member) {
        let candidate = core.candidate.as_ref();
        let open = candidate.and_then(|held| Some((held.mirror.as_ref()?, held.term)));
        if let Some((mirror, term)) = open {
            mirror.remove(member);
            self.tell_of_end(core, member, term);
        }
    }

    fn stop_following(&self, core: &mut Core) {
        let Some(following) = core.following.take() else {
            return;
        };
        let is_part = following.back.is_copying();
        self.work(Box::new(move |_, files| {
            following.follower.stop();
            if is_part {
                files.close();
            }
        }));
    }

    fn refuse_term(&self, core: &Core, to: ServerId, promised: Term) {
        let (kind, about) = core.message.unwrap_or((Kind::Beat, Default::default()));
        let refused = Refused {
            reason: Reason::LowerTerm,
            kind,
            term: promised,
        };
        let number = (about.term, about.number);
        self.tell_server(to, number, &Control::Refused(refused));
    }

    /// These starts of servers have a session. A candidate waits less for others: whoever has none, and did not report within
    /// a part of the patience, is gone or frozen, as the office itself began when a session had ended.
    pub(super) fn fail_without_session(&self, core: &mut Core, live: &[Member]) {
        let State::Equalising(office) = core.replica.state() else {
            return;
        };
        let patience_us = self.settings.timing.silence_us / NO_SESSION_PATIENCE;
        let is_known = live.contains(&self.me);
        if !is_known || self.now().since_us(office.begun) < patience_us {
            return;
        }
        let mates = office.mates.iter();
        let untold = mates.filter(|(member, mate, is_failed)| {
            *mate == Mate::Asked && !is_failed && !live.contains(member)
        });
        let gone: Vec<Member> = untold.map(|mate| mate.0).collect();
        for member in gone {
            let (group, server) = (self.id().0, member.server.0);
            tracing::info!(
                group,
                server,
                "a member without a session is not waited for"
            );
            self.replica(core, Event::Failed(member));
        }
    }

    /// Whoever follows a primary that sends no beats was removed, maybe, and the word of that was lost with a link, as may be
    /// the coordinator's.
    pub(super) fn look_if_unheard(&self, core: &mut Core) {
        let follows = matches!(core.replica.state(), State::InSync(_));
        let (now, patience_us) = (self.now(), 2 * self.settings.timing.silence_us);
        if follows && now.since_us(core.heard_at) >= patience_us {
            core.heard_at = now;
            self.replica(core, Event::Look);
        }
    }

    /// Whoever follows a primary and is not in the set is about to be added, or was removed and has not heard of it: the
    /// primary knows.
    pub(super) fn ask_if_outside(&self, core: &mut Core) {
        let Some(stream) = core.replica.stream().filter(|_| core.is_outside) else {
            return;
        };
        let now = self.now();
        if now.since_us(core.asked_at) >= self.settings.timing.silence_us {
            core.asked_at = now;
            let standing = Control::Standing(self.standing(core));
            self.ask(core, stream.primary, stream.term, &standing);
        }
    }

    /// How the group stands here.
    pub(super) fn standing(&self, core: &Core) -> Standing {
        let stage = match core.replica.state() {
            State::Absent => Stage::Absent,
            State::Stale => Stage::Stale,
            State::Joining(_) => Stage::Joining,
            State::InSync(_) | State::Repairing(_) => Stage::InSync,
            State::Sealing { .. } | State::Sealed { .. } => Stage::Sealed,
            State::Equalising(_) => Stage::Equalising,
            State::Opening(_) => Stage::Opening,
            State::Serving(_) => stage_of_primary(core),
        };
        let mut standing = Standing {
            stage,
            ..Standing::absent()
        };
        if let Some(found) = &core.found {
            standing.extent = extent_of(&found.report);
        }
        if let Some(office) = &core.office {
            standing.landed = office.machine.landed();
            standing.durable = office.store.engine().log_durable();
        }
        standing
    }
}

fn stage_of_primary(core: &Core) -> Stage {
    match core.office.as_ref().map(|office| office.machine.phase()) {
        Some(Phase::Serving) => Stage::Serving,
        Some(Phase::Frozen) => Stage::Frozen,
        Some(Phase::Short) => Stage::Short,
        Some(Phase::Deposed) | None => Stage::Deposed,
    }
}

/// Everything that was received becomes durable.
fn drain() -> Job {
    Box::new(|group, files| {
        let following = group.core().following.take();
        let drained = match following {
            Some(following) => {
                let drained = following.follower.seal();
                group.core().followed = following.follower.followed();
                drained
            }
            None => Ok(()),
        };
        let flushed = drained.and_then(|()| files.device(group)?.flush());
        if let Err(error) = flushed {
            tracing::error!(%error, "what was received cannot be made durable");
            group.core().has_failed = true;
        }
    })
}

/// Finds out what is durable.
fn compute_end(term: Term) -> Job {
    Box::new(move |group, files| {
        let core = group.core();
        if core.has_failed {
            return;
        }
        let followed = core.followed;
        drop(core);
        let found = files
            .device(group)
            .and_then(|device| Found::in_file(&device, followed));
        match found {
            Ok(found) => {
                tracing::info!(group = group.id().0, term = term.0, "a member is sealed");
                group.note(|moments, now_us| moments.sealed_us = now_us);
                let report = found.report;
                let mut core = group.core();
                core.found = Some(found);
                group.replica(&mut core, Event::Ended { term, report });
            }
            Err(error) => group.fail(
                &mut group.core(),
                &error,
                "a sealed volume cannot be examined",
            ),
        }
    })
}

pub(super) fn extent_of(report: &Report) -> Extent {
    Extent {
        slot: Slot {
            incarnation: report.slot.incarnation,
            epoch: report.slot.epoch,
        },
        log_end: report.log_end,
    }
}

pub(super) fn report_of(extent: &Extent) -> Report {
    Report {
        slot: SlotMark {
            incarnation: extent.slot.incarnation,
            epoch: extent.slot.epoch,
        },
        log_end: extent.log_end,
    }
}

impl Found {
    /// What a file has, the log of which is known to be there up to `followed`.
    pub(super) fn in_file(
        device: &Arc<dyn kreon_device::Device>,
        followed: Option<Lsn>,
    ) -> kreon_base::Result<Self> {
        match examine(device, followed) {
            Ok(examined) => Ok(Self::of(Some(examined))),
            Err(error) if error.kind() == kreon_base::ErrorKind::NotFound => Ok(Self::of(None)),
            Err(error) => Err(error),
        }
    }
}
