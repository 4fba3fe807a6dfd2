//! How a group stands here, for clients.

use kreon_wire::{Address, Control, Standing};

use super::desk::Desk;
use crate::client::ClientLink;

impl Desk {
    /// Tells a client how a group stands here.
    pub fn tell_standing(&self, client: &ClientLink, about: Address) {
        let group = self.group(about.group).and_then(|hosted| hosted.group());
        let (standing, term) = match group {
            Some(group) => {
                let told = group.told();
                (told.standing, told.term)
            }
            None => (Standing::absent(), kreon_wire::Term(0)),
        };
        let to = Address { term, ..about };
        client.tell(&Control::Standing(standing).encode(&to));
    }
}
