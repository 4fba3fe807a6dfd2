//! How clients are named: by names, numbers and kinds.

use crate::clients::ClientKind;
use crate::reply::CommandError;

/// A name without blanks and control characters, so that `CLIENT LIST` stays readable.
///
/// # Errors
/// It has some.
pub(super) fn checked_name(name: &[u8]) -> Result<String, CommandError> {
    printable(name).ok_or(CommandError::new(
        "ERR Client names cannot contain spaces, newlines or special characters.",
    ))
}

pub(super) fn printable(text: &[u8]) -> Option<String> {
    /// Names are shown to whoever asks for the list, all of them at once.
    const BYTES_MAX: usize = 1024;
    let is_printable = text.iter().all(|byte| byte.is_ascii_graphic()) && text.len() <= BYTES_MAX;
    is_printable.then(|| String::from_utf8_lossy(text).into_owned())
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
