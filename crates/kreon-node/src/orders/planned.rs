//! Orders that the primary of a group carries out: it gives its office to another member, or a member up.

use kreon_wire::FailureKind;

use super::thread::Clerk;
use super::{Given, Outcome, Refusal};

impl Clerk {
    /// See the module's text.
    pub(super) fn planned(&mut self, order: &Given) -> Outcome {
        match *order {
            Given::RemoveMember(group, server) => {
                match self.in_office(|office| office.remove_outsider(group, server))? {
                    true => Ok(()),
                    false => Err(Refusal::new(
                        FailureKind::InvalidArgument,
                        "the member is in sync: it can be removed when its server is down",
                    )),
                }
            }
            _ => Err(Refusal::new(
                FailureKind::InvalidArgument,
                "primaries are chosen when one is lost, not yet by order",
            )),
        }
    }
}
