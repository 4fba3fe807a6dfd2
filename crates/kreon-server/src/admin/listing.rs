//! `COMMAND`: what commands there are.

use bytes::Bytes;

use super::subcommand::{subcommand, unknown_subcommand};
use crate::command::{Command, Flags, all, find};
use crate::reply::{CommandError, Reply};

/// `COMMAND [COUNT | LIST | INFO [name ...] | DOCS [name ...] | GETKEYS command ...]`.
pub(super) fn command(args: &[Bytes]) -> Result<Reply, CommandError> {
    if args.len() == 1 {
        return Ok(Reply::Array(all().iter().map(info).collect()));
    }
    match (subcommand(args).as_str(), args.get(2..).unwrap_or_default()) {
        ("count", []) => Ok(Reply::Int(all().len() as i64)),
        ("list", []) => {
            let names = all().iter().map(|command| Reply::constant(command.name));
            Ok(Reply::Array(names.collect()))
        }
        ("info", []) => Ok(Reply::Array(all().iter().map(info).collect())),
        ("info", names) => {
            let each = names.iter().map(|name| find(name).map_or(Reply::Nil, info));
            Ok(Reply::Array(each.collect()))
        }
        ("docs", []) => Ok(Reply::Map(all().iter().map(docs).collect())),
        ("docs", names) => {
            let found = names.iter().filter_map(|name| find(name));
            Ok(Reply::Map(found.map(docs).collect()))
        }
        ("getkeys", request @ [name, ..]) => keys(name, request),
        _ => Err(unknown_subcommand(args)),
    }
}

fn keys(name: &[u8], request: &[Bytes]) -> Result<Reply, CommandError> {
    let command = find(name).ok_or(CommandError::new("ERR Invalid command specified"))?;
    if !command.takes(request.len()) {
        return Err(CommandError::new(
            "ERR Invalid number of arguments specified for command",
        ));
    }
    let keys: Vec<_> = command
        .keys_of(request)
        .map(|key| Reply::Bulk(key.clone()))
        .collect();
    match keys.is_empty() {
        true => Err(CommandError::new("ERR The command has no key arguments")),
        false => Ok(Reply::Array(keys)),
    }
}

/// Name, number of arguments, flags, keys, categories; then hints, key specifications and subcommands, of which there are none.
fn info(command: &Command) -> Reply {
    let flags = [
        (Flags::WRITE, "write"),
        (Flags::READONLY, "readonly"),
        (Flags::ADMIN, "admin"),
        (Flags::PUBSUB, "pubsub"),
        (Flags::BLOCKING, "blocking"),
        (Flags::FAST, "fast"),
        (Flags::NO_AUTH, "no_auth"),
        (Flags::NO_MULTI, "no_multi"),
    ];
    let set = flags.iter().filter(|(flag, _)| command.flags.has(*flag));
    let flags = set.map(|(_, name)| Reply::Simple(name)).collect();
    Reply::Array(vec![
        Reply::constant(command.name),
        Reply::Int(command.arity.into()),
        Reply::Set(flags),
        Reply::Int(command.keys.first.into()),
        Reply::Int(command.keys.last.into()),
        Reply::Int(command.keys.step.into()),
        Reply::Set(Vec::new()),
        Reply::Set(Vec::new()),
        Reply::Set(Vec::new()),
        Reply::Set(Vec::new()),
    ])
}

fn docs(command: &Command) -> (Reply, Reply) {
    let docs = vec![
        (Reply::constant("summary"), Reply::constant(command.summary)),
        (Reply::constant("since"), Reply::constant("1.0.0")),
        (
            Reply::constant("group"),
            Reply::constant(command.group.name()),
        ),
    ];
    (Reply::constant(command.name), Reply::Map(docs))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(line: &str) -> Result<Reply, CommandError> {
        let args: Vec<Bytes> = line
            .split(' ')
            .map(|word| Bytes::copy_from_slice(word.as_bytes()))
            .collect();
        command(&args)
    }

    #[test]
    fn keys_of_a_request_are_those_that_the_command_would_take() {
        let keys = |keys: &[&str]| {
            Ok(Reply::Array(
                keys.iter()
                    .map(|key| Reply::copied(key.as_bytes()))
                    .collect(),
            ))
        };
        assert_eq!(run("command getkeys mset a 1 b 2"), keys(&["a", "b"]));
        assert_eq!(run("COMMAND GETKEYS get a"), keys(&["a"]));
        assert!(run("command getkeys ping").is_err());
        assert!(run("command getkeys get").is_err());
    }

    #[test]
    fn all_commands_are_counted_listed_and_explained() {
        let Ok(Reply::Array(infos)) = run("command") else {
            panic!()
        };
        let Ok(Reply::Map(docs)) = run("command docs") else {
            panic!()
        };
        assert_eq!(run("command count"), Ok(Reply::Int(infos.len() as i64)));
        assert_eq!(infos.len(), docs.len());
        let Ok(Reply::Array(one)) = run("command info nosuch") else {
            panic!()
        };
        assert_eq!(one, [Reply::Nil]);
    }
}
