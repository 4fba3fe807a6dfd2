//! `CLIENT`.

use std::sync::atomic::Ordering;
use std::time::Instant;

use bytes::Bytes;

use super::state::Session;
use crate::admin::unknown_subcommand;
use crate::clients::ClientKind;
use crate::reply::{CommandError, Reply};

const SYNTAX: CommandError = CommandError::new("ERR syntax error");

impl Session {
    pub(super) fn client_command(&mut self, args: &[Bytes]) -> Reply {
        let what = args.get(1).map(|what| what.to_ascii_lowercase());
        let rest = args.get(2..).unwrap_or_default();
        let outcome = match (what.as_deref().unwrap_or_default(), rest) {
            (b"id", []) => Ok(Reply::Int(self.entry.id as i64)),
            (b"info", []) => Ok(Reply::Text(self.entry.line(Instant::now()))),
            (b"list", _) => self.client_list(rest),
            (b"getname", []) => Ok(match self.entry.name.lock().clone() {
                name if name.is_empty() => Reply::Nil,
                name => Reply::Bulk(name.into()),
            }),
            (b"setname", [name]) => checked_name(name).map(|name| {
                *self.entry.name.lock() = name;
                Reply::Ok
            }),
            (b"setinfo", [what, text]) => self.client_set_info(what, text),
            (b"kill", _) => self.client_kill(rest),
            (b"no-evict", [switch]) => on_or_off(switch).map(|is_on| {
                self.entry.is_evictable.store(!is_on, Ordering::Relaxed);
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
    fn client_list(&self, args: &[Bytes]) -> Result<Reply, CommandError> {
        let entries = self.shared.clients.entries();
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
                let ids: Vec<u64> = ids.collect::<Result<_, _>>()?;
                let chosen = entries.iter().filter(|entry| ids.contains(&entry.id));
                text.extend(chosen.map(|entry| entry.line(now)));
            }
            _ => return Err(SYNTAX),
        }
        Ok(Reply::Text(text))
    }

    fn client_set_info(&self, what: &[u8], text: &[u8]) -> Result<Reply, CommandError> {
        let mut library = self.entry.library.lock();
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
}

/// A name without blanks and control characters, so that `CLIENT LIST` stays readable.
///
/// # Errors
/// It has some.
pub(super) fn checked_name(name: &[u8]) -> Result<String, CommandError> {
    printable(name).ok_or(CommandError::new(
        "ERR Client names cannot contain spaces, newlines or special characters.",
    ))
}

fn printable(text: &[u8]) -> Option<String> {
    /// Names are shown to whoever asks for the list, all of them at once.
    const BYTES_MAX: usize = 1024;
    let is_printable = text.iter().all(|byte| byte.is_ascii_graphic()) && text.len() <= BYTES_MAX;
    is_printable.then(|| String::from_utf8_lossy(text).into_owned())
}

fn on_or_off(switch: &[u8]) -> Result<bool, CommandError> {
    match switch.to_ascii_lowercase().as_slice() {
        b"on" => Ok(true),
        b"off" => Ok(false),
        _ => Err(SYNTAX),
    }
}

/// The number of a client.
pub(super) fn id_of(text: &[u8]) -> Result<u64, CommandError> {
    let number = str::from_utf8(text).ok().and_then(|text| text.parse().ok());
    match number {
        Some(id) if id > 0 => Ok(id),
        _ => Err(CommandError::new("ERR Invalid client ID")),
    }
}

/// None: a kind that there is never one of.
pub(super) fn kind_of(text: &[u8]) -> Result<Option<ClientKind>, CommandError> {
    match text.to_ascii_lowercase().as_slice() {
        b"normal" => Ok(Some(ClientKind::Normal)),
        b"pubsub" => Ok(Some(ClientKind::PubSub)),
        b"master" | b"replica" | b"slave" => Ok(None),
        other => {
            let other = String::from_utf8_lossy(other);
            Err(CommandError::of(format!(
                "ERR Unknown client type '{other}'"
            )))
        }
    }
}
