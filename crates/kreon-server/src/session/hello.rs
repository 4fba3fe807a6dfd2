//! `HELLO`: the protocol's version, and with it a password and a name.

use bytes::Bytes;

use super::auth::authenticate;
use super::naming::checked_name;
use super::state::Session;
use crate::admin::REDIS_VERSION;
use crate::reply::{CommandError, Reply};
use crate::resp::Version;

/// `HELLO [version [AUTH user password] [SETNAME name]]`.
pub(super) fn hello(session: &mut Session, args: &[Bytes]) -> Reply {
    match greet(session, args) {
        Ok(()) => greeting(session),
        Err(error) => Reply::Error(error),
    }
}

fn greet(session: &mut Session, args: &[Bytes]) -> Result<(), CommandError> {
    let version = match args.get(1).map(AsRef::as_ref) {
        None => session.version,
        Some(b"2") => Version::Resp2,
        Some(b"3") => Version::Resp3,
        Some(other) if str::from_utf8(other).is_ok_and(|text| text.parse::<i64>().is_ok()) => {
            return Err(CommandError::new("NOPROTO unsupported protocol version"));
        }
        Some(_) => {
            return Err(CommandError::new(
                "ERR Protocol version is not an integer or out of range",
            ));
        }
    };
    let (mut rest, mut name) = (args.get(2..).unwrap_or_default(), None);
    while let Some((option, behind)) = rest.split_first() {
        rest = match behind {
            [user, password, behind @ ..] if option.eq_ignore_ascii_case(b"auth") => {
                authenticate(session, user, password)?;
                behind
            }
            [given, behind @ ..] if option.eq_ignore_ascii_case(b"setname") => {
                name = Some(checked_name(given)?);
                behind
            }
            _ => {
                let option = String::from_utf8_lossy(option);
                return Err(CommandError::of(format!(
                    "ERR Syntax error in HELLO option '{option}'"
                )));
            }
        };
    }
    if !session.is_authenticated {
        return Err(CommandError::new(
            "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH <user> \
             <pass> option can be used to authenticate the client and select the RESP protocol version at the same time",
        ));
    }
    if let Some(name) = name {
        *session.entry.name.lock() = name;
    }
    session.version = version;
    Ok(())
}

fn greeting(session: &Session) -> Reply {
    let id = i64::try_from(session.entry.id).unwrap_or(i64::MAX);
    Reply::Map(vec![
        (Reply::constant("server"), Reply::constant("redis")),
        (Reply::constant("version"), Reply::constant(REDIS_VERSION)),
        (
            Reply::constant("proto"),
            Reply::Int(session.version.number()),
        ),
        (Reply::constant("id"), Reply::Int(id)),
        (Reply::constant("mode"), Reply::constant("standalone")),
        (Reply::constant("role"), Reply::constant("master")),
        (Reply::constant("modules"), Reply::Array(Vec::new())),
    ])
}
