//! Commands: what there are, and how those on data run.

mod args;
mod blocking;
mod bodies;
mod chance;
mod combine;
mod deadline;
mod decimal;
mod exec;
mod execute;
mod glob;
mod hashes;
mod id;
mod keys;
mod lists;
mod pipeline;
mod plain;
mod scan;
mod serving;
mod sets;
mod steps;
mod strings;
mod table;
#[cfg(test)]
mod tests;
mod watching;
mod whole;
mod zrange;
mod zsets;

use bytes::Bytes;

pub(crate) use combine::Combiner;
pub(crate) use exec::execute_all;
pub(crate) use execute::execute;
pub(crate) use glob::matches as glob_matches;
pub(crate) use id::Id;
pub(crate) use pipeline::{Pipeline, Queued};
pub(crate) use table::{all, find};

use crate::reply::CommandError;

/// A command as clients are told of it.
#[derive(Debug)]
pub(crate) struct Command {
    pub id: Id,
    /// In lower case.
    pub name: &'static str,
    /// Number of arguments with the name; if negative, that many or more.
    pub arity: i32,
    pub flags: Flags,
    pub keys: KeySpec,
    pub group: Group,
    pub summary: &'static str,
}

/// Properties of a command, as bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Flags(u16);

impl Flags {
    /// Changes data: refused by a store that is open for reading only.
    pub(crate) const WRITE: Self = Self(1);
    /// Reads data and changes none.
    pub(crate) const READONLY: Self = Self(1 << 1);
    /// Takes the same time however large the data is.
    pub(crate) const FAST: Self = Self(1 << 2);
    /// May wait for other clients.
    pub(crate) const BLOCKING: Self = Self(1 << 3);
    pub(crate) const ADMIN: Self = Self(1 << 4);
    pub(crate) const PUBSUB: Self = Self(1 << 5);
    /// Allowed before a client has authenticated.
    pub(crate) const NO_AUTH: Self = Self(1 << 6);
    /// Refused within a transaction.
    pub(crate) const NO_MULTI: Self = Self(1 << 7);
    pub(crate) const NONE: Self = Self(0);

    pub(crate) const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(crate) const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

/// Which arguments are keys, counted from 1 behind the name at 0, as `COMMAND` tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KeySpec {
    /// 0: there are none.
    pub first: i32,
    /// If negative, from the end: -1 is the last argument.
    pub last: i32,
    pub step: i32,
}

impl KeySpec {
    pub(crate) const NONE: Self = Self {
        first: 0,
        last: 0,
        step: 0,
    };
    pub(crate) const ONE: Self = Self {
        first: 1,
        last: 1,
        step: 1,
    };
    pub(crate) const TWO: Self = Self {
        first: 1,
        last: 2,
        step: 1,
    };
    pub(crate) const ALL: Self = Self {
        first: 1,
        last: -1,
        step: 1,
    };
    /// Every second argument: `MSET`.
    pub(crate) const PAIRS: Self = Self {
        first: 1,
        last: -1,
        step: 2,
    };
    /// All but the last argument: `BLPOP`.
    pub(crate) const BUT_LAST: Self = Self {
        first: 1,
        last: -2,
        step: 1,
    };
}

/// The section of Redis' manual.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Group {
    Connection,
    Generic,
    Hash,
    List,
    Ordered,
    PubSub,
    Server,
    Set,
    SortedSet,
    String,
    Transactions,
}

impl Group {
    /// As `COMMAND DOCS` names it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Connection => "connection",
            Self::Generic => "generic",
            Self::Hash => "hash",
            Self::List => "list",
            Self::Ordered => "kreon",
            Self::PubSub => "pubsub",
            Self::Server => "server",
            Self::Set => "set",
            Self::SortedSet => "sorted-set",
            Self::String => "string",
            Self::Transactions => "transactions",
        }
    }
}

impl Command {
    /// Whether so many arguments, with the name, are neither too few nor too many.
    pub(crate) fn takes(&self, arguments: usize) -> bool {
        let arguments = i64::try_from(arguments).unwrap_or(i64::MAX);
        match self.arity {
            least @ ..0 => arguments >= -i64::from(least),
            exactly => arguments == i64::from(exactly),
        }
    }

    /// The error of a wrong number of arguments.
    pub(crate) fn wrong_arity(&self) -> CommandError {
        CommandError::of(format!(
            "ERR wrong number of arguments for '{}' command",
            self.name
        ))
    }

    /// The keys among `args`, which begin with the name.
    pub(crate) fn keys_of<'a>(
        &self,
        args: &'a [Bytes],
    ) -> impl Iterator<Item = &'a Bytes> + use<'a> {
        let KeySpec { first, last, step } = self.keys;
        let count = i32::try_from(args.len()).unwrap_or(i32::MAX);
        let last = if last < 0 {
            count.saturating_add(last)
        } else {
            last
        };
        let first_index = usize::try_from(first).unwrap_or(0);
        let taken = match first {
            0 => 0,
            _ => usize::try_from(last - first + 1).unwrap_or(0),
        };
        let step = usize::try_from(step).unwrap_or(1).max(1);
        args.iter().skip(first_index).take(taken).step_by(step)
    }
}
