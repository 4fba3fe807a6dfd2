//! `CLIENT KILL`.

use std::sync::Arc;

use bytes::Bytes;

use super::naming::{id_of, kind_of};
use super::state::Session;
use crate::clients::{ClientEntry, ClientKind};
use crate::reply::{CommandError, Reply};

/// Which connections: those for which all that is given holds.
#[derive(Debug, Default)]
struct Chosen {
    id: Option<u64>,
    address: Option<String>,
    local_address: Option<String>,
    kind: Option<Option<ClientKind>>,
    spares_caller: bool,
    /// Another user than the only one.
    is_nobody: bool,
}

impl Chosen {
    /// `ID id`, `ADDR address`, `LADDR address`, `TYPE type`, `USER name`, `SKIPME yes|no`.
    fn parse(options: &[Bytes]) -> Result<Self, CommandError> {
        let mut chosen = Self {
            spares_caller: true,
            ..Self::default()
        };
        let (pairs, rest) = options.as_chunks::<2>();
        if !rest.is_empty() {
            return Err(CommandError::new("ERR syntax error"));
        }
        for [option, value] in pairs {
            let text = || String::from_utf8_lossy(value).into_owned();
            match option.to_ascii_lowercase().as_slice() {
                b"id" => chosen.id = Some(id_of(value)?),
                b"addr" => chosen.address = Some(text()),
                b"laddr" => chosen.local_address = Some(text()),
                b"type" => chosen.kind = Some(kind_of(value)?),
                b"user" => chosen.is_nobody = value.as_ref() != b"default",
                b"skipme" if value.eq_ignore_ascii_case(b"yes") => chosen.spares_caller = true,
                b"skipme" if value.eq_ignore_ascii_case(b"no") => chosen.spares_caller = false,
                _ => return Err(CommandError::new("ERR syntax error")),
            }
        }
        Ok(chosen)
    }

    fn has(&self, entry: &ClientEntry) -> bool {
        let is = |given: &Option<String>, address: &String| {
            given.as_ref().is_none_or(|given| given == address)
        };
        !self.is_nobody
            && self.id.is_none_or(|id| id == entry.id)
            && is(&self.address, &entry.address)
            && is(&self.local_address, &entry.local_address)
            && self.kind.is_none_or(|kind| kind == Some(entry.kind()))
    }
}

/// `CLIENT KILL address`, or with options.
pub(super) fn kill(session: &mut Session, args: &[Bytes]) -> Result<Reply, CommandError> {
    match args {
        [] => Err(CommandError::new("ERR syntax error")),
        [address] => {
            let chosen = Chosen {
                address: Some(String::from_utf8_lossy(address).into_owned()),
                ..Chosen::default()
            };
            match kill_all(session, &chosen) {
                0 => Err(CommandError::new("ERR No such client")),
                _ => Ok(Reply::Ok),
            }
        }
        options => Ok(Reply::Int(kill_all(session, &Chosen::parse(options)?))),
    }
}

/// How many connections were told to end.
fn kill_all(session: &mut Session, chosen: &Chosen) -> i64 {
    let mut killed = 0;
    for entry in session.shared.clients.entries() {
        if !chosen.has(&entry) {
            continue;
        }
        if !Arc::ptr_eq(&entry, &session.entry) {
            entry.mailbox.kill();
        } else if chosen.spares_caller {
            continue;
        } else {
            // With the reply.
            session.is_over = true;
        }
        killed += 1;
    }
    killed
}
