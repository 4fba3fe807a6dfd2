//! What the machine of a primary wants done.

use kreon_wire::{Control, Kind, Member, Reason, Refused, Term};

use super::asking::Asker;
use super::group::{Core, Group};
use crate::machine::primary::{Action, Event};
use crate::machine::replica::Event as ReplicaEvent;

impl Group {
    pub(super) fn do_for_primary(&self, core: &mut Core, action: Action) {
        let Some(office) = &core.office else {
            // Ended by an action before this one; reads are never left without an answer.
            if let Action::Drop(read) | Action::Show(read) = action {
                self.host.drop_read(read);
            }
            return;
        };
        let term = office.machine.term();
        match action {
            Action::Flush(upto) => office.flusher.flush(upto),
            // The log asks the mirror itself.
            Action::Landed(_) => {}
            Action::DurableEverywhere(upto) => self.host.durable(upto),
            Action::Acknowledge(upto) => self.host.acknowledge(upto),
            Action::Show(read) => self.host.show(read),
            Action::Drop(read) => self.host.drop_read(read),
            Action::TakeWrites(takes) => self.host.take_writes(takes),
            Action::Beat { to, beat } => self.tell(to, (term, beat.0), &Control::Beat),
            Action::Attach(joiner) => self.attach(core, joiner),
            // What completes the volume was done before the machine was told that all is copied.
            Action::Complete(joiner) => self.primary(core, Event::Completed(joiner)),
            Action::Close(member) => {
                let mirror = office.store.mirror();
                let standing = mirror.standing().into_iter();
                for copy in standing.filter(|held| held.member == member && !held.is_counted) {
                    tracing::warn!(group = self.id().0, ?copy, "a joiner is given up");
                }
                mirror.remove(member);
                self.tell_of_end(core, member, term);
            }
            Action::Ask(ticket, ask) => {
                self.asking
                    .ask(Asker::Primary(self.id(), term), ticket, &ask);
            }
            Action::Abandon => {
                self.abandon(core, "another one is in office");
                self.replica(core, ReplicaEvent::Deposed);
            }
        }
    }

    /// Tells a member that its stream has ended. Those of other groups on the same link go on.
    pub(super) fn tell_of_end(&self, core: &mut Core, member: Member, term: Term) {
        let refused = Refused {
            reason: Reason::NotInSet,
            kind: Kind::Progress,
            term,
        };
        self.ask(core, member, term, &Control::Refused(refused));
    }
}
