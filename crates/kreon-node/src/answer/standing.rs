//! How a group stands here, for clients.

use kreon_wire::{Address, Control, Standing, Term};

use crate::client::ClientLink;
use crate::hosted::Hosted;

/// Tells a client how a group stands here.
pub fn tell(hosted: Option<&Hosted>, client: &ClientLink, about: Address) {
    let group = hosted.and_then(Hosted::group);
    let (standing, term) = match group {
        Some(group) => {
            let told = group.told();
            (told.standing, told.term)
        }
        None => (Standing::absent(), Term(0)),
    };
    let to = Address { term, ..about };
    client.tell(&Control::Standing(standing).encode(&to));
}
