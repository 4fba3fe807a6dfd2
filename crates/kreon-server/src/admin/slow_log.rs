//! `SLOWLOG`.

use bytes::Bytes;

use super::subcommand::{subcommand, unknown_subcommand};
use crate::reply::{CommandError, Reply};
use crate::shared::{Shared, SlowCommand};

/// `SLOWLOG GET [count] | LEN | RESET`.
pub(super) fn slow_log(shared: &Shared, args: &[Bytes]) -> Result<Reply, CommandError> {
    const COUNT: usize = 10;
    let log = &shared.slow_log;
    match (subcommand(args).as_str(), args.get(2..).unwrap_or_default()) {
        ("get", []) => Ok(told(log.last(COUNT))),
        ("get", [count]) => {
            let count = str::from_utf8(count)
                .ok()
                .and_then(|count| count.parse::<i64>().ok());
            match count {
                Some(-1) => Ok(told(log.last(usize::MAX))),
                Some(count) if count >= 0 => Ok(told(log.last(count as usize))),
                _ => Err(CommandError::new(
                    "ERR count should be greater than or equal to -1",
                )),
            }
        }
        ("len", []) => Ok(Reply::Int(log.len() as i64)),
        ("reset", []) => {
            log.clear();
            Ok(Reply::Ok)
        }
        _ => Err(unknown_subcommand(args)),
    }
}

fn told(commands: Vec<SlowCommand>) -> Reply {
    let each = commands.into_iter().map(|command| {
        Reply::Array(vec![
            Reply::Int(command.id as i64),
            Reply::Int(command.at_s),
            Reply::Int(command.took.as_micros() as i64),
            Reply::Array(command.args.into_iter().map(Reply::Bulk).collect()),
            Reply::Bulk(command.address.into()),
            Reply::Bulk(command.name.into()),
        ])
    });
    Reply::Array(each.collect())
}
