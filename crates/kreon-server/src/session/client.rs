//! `CLIENT`.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::time::Instant;

use bytes::Bytes;

use super::kill::kill;
use super::naming::{checked_name, id_of, kind_of, printable};
use super::state::Session;
use crate::admin::unknown_subcommand;
use crate::reply::{CommandError, Reply};

const SYNTAX: CommandError = CommandError::new("ERR syntax error");

pub(super) fn client(session: &mut Session, args: &[Bytes]) -> Reply {
    let what = args.get(1).map(|what| what.to_ascii_lowercase());
    let rest = args.get(2..).unwrap_or_default();
    let outcome = match (what.as_deref().unwrap_or_default(), rest) {
        (b"id", []) => Ok(Reply::Int(session.entry.id as i64)),
        (b"info", []) => Ok(Reply::Text(session.entry.line(Instant::now()))),
        (b"list", _) => client_list(session, rest),
        (b"getname", []) => Ok(match session.entry.name.lock().clone() {
            name if name.is_empty() => Reply::Nil,
            name => Reply::Bulk(name.into()),
        }),
        (b"setname", [name]) => checked_name(name).map(|name| {
            *session.entry.name.lock() = name;
            Reply::Ok
        }),
        (b"setinfo", [what, text]) => client_set_info(session, what, text),
        (b"kill", _) => kill(session, rest),
        (b"no-evict", [switch]) => on_or_off(switch).map(|is_on| {
            session.entry.is_evictable.store(!is_on, Ordering::Relaxed);
            Reply::Ok
        }),
        // Accesses leave no traces.
        (b"no-touch", [switch]) => on_or_off(switch).map(|_| Reply::Ok),
        (b"reply", [switch]) if switch.eq_ignore_ascii_case(b"on") => Ok(Reply::Ok),
        (b"getredir", []) => Ok(Reply::Int(-1)),
        _ => Err(unknown_subcommand(args)),
    };
    outcome.unwrap_or_else(Reply::Error)
}

/// `CLIENT LIST [TYPE type | ID id ...]`.
fn client_list(session: &Session, args: &[Bytes]) -> Result<Reply, CommandError> {
    let entries = session.shared.clients.entries();
    let now = Instant::now();
    let mut text = String::new();
    match args {
        [] => text.extend(entries.iter().map(|entry| entry.line(now))),
        [option, kind] if option.eq_ignore_ascii_case(b"type") => {
            let kind = kind_of(kind)?;
            let chosen = entries.iter().filter(|entry| Some(entry.kind()) == kind);
            text.extend(chosen.map(|entry| entry.line(now)));
        }
        [option, ids @ ..] if option.eq_ignore_ascii_case(b"id") && !ids.is_empty() => {
            let ids = ids.iter().map(|id| id_of(id));
            let ids: BTreeSet<u64> = ids.collect::<Result<_, _>>()?;
            let chosen = entries.iter().filter(|entry| ids.contains(&entry.id));
            text.extend(chosen.map(|entry| entry.line(now)));
        }
        _ => return Err(SYNTAX),
    }
    Ok(Reply::Text(text))
}

fn client_set_info(session: &Session, what: &[u8], text: &[u8]) -> Result<Reply, CommandError> {
    let mut library = session.entry.library.lock();
    let field = match what.to_ascii_lowercase().as_slice() {
        b"lib-name" => &mut library.0,
        b"lib-ver" => &mut library.1,
        _ => {
            let what = String::from_utf8_lossy(what);
            return Err(CommandError::of(format!(
                "ERR Unrecognized option '{what}'"
            )));
        }
    };
    *field = printable(text).ok_or(CommandError::new(
        "ERR lib-name and lib-ver cannot contain spaces, newlines or special characters.",
    ))?;
    Ok(Reply::Ok)
}

fn on_or_off(switch: &[u8]) -> Result<bool, CommandError> {
    match switch.to_ascii_lowercase().as_slice() {
        b"on" => Ok(true),
        b"off" => Ok(false),
        _ => Err(SYNTAX),
    }
}
