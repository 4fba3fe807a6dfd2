//! `PUBLISH` and `PUBSUB`.

use bytes::Bytes;

use crate::admin::unknown_subcommand;
use crate::pubsub::Channels;
use crate::reply::{CommandError, Reply};

/// `PUBLISH channel message`.
pub(super) fn publish(channels: &Channels, args: &[Bytes]) -> Reply {
    match args {
        [_, channel, payload] => Reply::Int(channels.publish(channel, payload) as i64),
        _ => Reply::Error(CommandError::new("ERR syntax error")),
    }
}

/// `PUBSUB CHANNELS [pattern]`, `NUMSUB [channel ...]`, `NUMPAT`.
pub(super) fn pubsub(channels: &Channels, args: &[Bytes]) -> Reply {
    match args {
        [_, what, pattern @ ..] if what.eq_ignore_ascii_case(b"channels") => {
            let names = channels.names(pattern.first());
            Reply::Array(names.into_iter().map(Reply::Bulk).collect())
        }
        [_, what, names @ ..] if what.eq_ignore_ascii_case(b"numsub") => {
            let each = names.iter().flat_map(|name| {
                let count = channels.subscribers(name) as i64;
                [Reply::Bulk(name.clone()), Reply::Int(count)]
            });
            Reply::Array(each.collect())
        }
        [_, what] if what.eq_ignore_ascii_case(b"numpat") => Reply::Int(channels.patterns() as i64),
        _ => Reply::Error(unknown_subcommand(args)),
    }
}
