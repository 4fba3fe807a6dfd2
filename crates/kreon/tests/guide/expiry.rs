//! Keys that expire.

use std::time::Duration;

use kreon::{Region, Ttl};

use crate::Place;

fn sessions(sessions: &Region) -> kreon::Result<()> {
    let hour = Duration::from_secs(3600);
    sessions.put_with_ttl("anna", "token", hour)?;
    match sessions.ttl("anna")? {
        None => {}                 // no such key, or expired
        Some(Ttl::Unlimited) => {} // it stays
        Some(Ttl::Left(left)) => assert!(left <= hour),
    }
    sessions.expire("anna", 2 * hour)?; // from now on; writes the value anew
    sessions.persist("anna")?; // it stays; writes the value anew
    Ok(())
}

#[test]
fn a_session_expires_unless_it_is_persisted() {
    let place = Place::new();
    let region = place.region(&[]);
    sessions(&region).unwrap();
    assert_eq!(region.ttl("anna").unwrap(), Some(Ttl::Unlimited));
}
