//! `AUTH`.

use std::hint::black_box;

use bytes::Bytes;
use sha2::{Digest, Sha256};

use super::state::Session;
use crate::reply::{CommandError, Reply};

const WRONG_PASSWORD: CommandError =
    CommandError::new("WRONGPASS invalid username-password pair or user is disabled.");

/// `AUTH [user] password`. The only user is `default`.
pub(super) fn auth(session: &mut Session, args: &[Bytes]) -> Reply {
    let outcome = match args {
        [_, password] => {
            if session.shared.settings.password.is_none() {
                return Reply::Error(CommandError::new(
                    "ERR AUTH <password> called without any password configured for the default user. \
                     Are you sure your configuration is correct?",
                ));
            }
            authenticate(session, b"default", password)
        }
        [_, user, password] => authenticate(session, user, password),
        _ => Err(CommandError::new("ERR syntax error")),
    };
    match outcome {
        Ok(()) => Reply::Ok,
        Err(error) => Reply::Error(error),
    }
}

/// # Errors
/// The user or the password is wrong.
pub(super) fn authenticate(
    session: &mut Session,
    user: &[u8],
    password: &[u8],
) -> Result<(), CommandError> {
    let is_right = match &session.shared.settings.password {
        Some(right) => is_equal(right, password),
        None => true,
    };
    if !(is_right & (user == b"default")) {
        return Err(WRONG_PASSWORD);
    }
    session.is_authenticated = true;
    Ok(())
}

/// Takes the same time wherever the two differ: digests are compared, all bytes of them.
fn is_equal(one: &[u8], other: &[u8]) -> bool {
    let (one, other) = (Sha256::digest(one), Sha256::digest(other));
    let differences = one.iter().zip(&other).map(|(one, other)| one ^ other);
    black_box(differences.fold(0, |all, difference| black_box(all | difference))) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_equal_only_if_all_bytes_are() {
        assert!(is_equal(b"secret", b"secret"));
        for other in [&b"secre"[..], b"secret1", b"Secret", b"", b"secreT"] {
            assert!(!is_equal(b"secret", other));
        }
    }
}
