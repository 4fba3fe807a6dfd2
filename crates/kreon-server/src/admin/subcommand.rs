//! The second word of a command.

use bytes::Bytes;

use crate::reply::CommandError;

/// The error of Redis for the second word of a command.
pub(crate) fn unknown_subcommand(args: &[Bytes]) -> CommandError {
    let word = |place: usize| {
        let word = args.get(place).map(|word| String::from_utf8_lossy(word));
        word.unwrap_or_default().into_owned()
    };
    let (command, what) = (word(0).to_uppercase(), word(1));
    CommandError::of(format!(
        "ERR unknown subcommand '{what}'. Try {command} HELP."
    ))
}

/// The second word in lower case.
pub(super) fn subcommand(args: &[Bytes]) -> String {
    let word = args.get(1).map(|word| String::from_utf8_lossy(word));
    word.unwrap_or_default().to_ascii_lowercase()
}
