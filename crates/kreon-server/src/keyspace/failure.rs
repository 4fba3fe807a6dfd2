//! Why a command was not carried out.

use kreon::ErrorKind;

use crate::reply::CommandError;

/// Why a command was not carried out. Nothing of it was applied.
#[derive(Clone, Debug)]
pub(crate) enum Failure {
    /// The command itself is at fault.
    Refused(CommandError),
    /// What it reads is not in memory, and it must not wait for the device: it runs again where it may.
    Misses,
    Store(kreon::Error),
}

impl Failure {
    /// The reply to the client.
    pub(crate) fn into_error(self) -> CommandError {
        let error = match self {
            Self::Refused(error) => return error,
            Self::Misses => return CommandError::new("ERR the command would wait for the device"),
            Self::Store(error) => error,
        };
        let code = match error.kind() {
            ErrorKind::OutOfSpace => "OOM command not allowed:",
            ErrorKind::Poisoned | ErrorKind::Io => "MISCONF the store cannot write:",
            ErrorKind::ReadOnly => "READONLY",
            ErrorKind::Closed => "ERR the server is closing:",
            _ => "ERR",
        };
        CommandError::of(format!("{code} {error}"))
    }
}

impl From<CommandError> for Failure {
    fn from(error: CommandError) -> Self {
        Self::Refused(error)
    }
}

impl From<kreon::Error> for Failure {
    fn from(error: kreon::Error) -> Self {
        Self::Store(error)
    }
}
