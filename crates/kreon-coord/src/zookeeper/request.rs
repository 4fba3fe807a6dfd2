//! A command as requests to a server.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use futures_util::future::{Either, ready};
use zookeeper_client::{
    Acls, Client, CreateMode, Error, MultiWriteError, MultiWriteResult, MultiWriter, OneshotWatcher,
};

use super::reply::{of_children, of_get, of_write};
use crate::command::{Command, Mode, Operation, Reply, Version};

/// No node has it (a client that names -1 means any).
const NO_VERSION: i32 = i32::MIN;

/// An answer, and the watch that was set with it.
pub struct Answer {
    pub reply: Reply,
    pub watch: Option<OneshotWatcher>,
}

impl Answer {
    fn of(reply: Reply) -> Self {
        Self { reply, watch: None }
    }
}

/// An answer to come.
pub type Answering<'a> = Pin<Box<dyn Future<Output = Answer> + Send + 'a>>;

/// Puts the requests of a command into the queue of the client, right now; the answer comes by and by.
pub fn send<'a>(client: &'a Client, command: &Command) -> Answering<'a> {
    match command {
        Command::Sync => {
            let synced = sync(client);
            Box::pin(async move { Answer::of(of_sync(synced.await)) })
        }
        Command::Get { path, watch: false } => {
            let got = client.get_data(path);
            Box::pin(async move { Answer::of(of_get(got.await)) })
        }
        Command::Get { path, watch: true } => {
            // Both are in the queue with nothing between them. A node that is missing is watched, too.
            let looked = client.check_and_watch_stat(path);
            let got = client.get_data(path);
            Box::pin(async move {
                let looked = looked.await;
                let got = got.await;
                match looked {
                    Ok((_, watch)) => Answer {
                        reply: of_get(got),
                        watch: Some(watch),
                    },
                    Err(_) => Answer::of(Reply::Unknown),
                }
            })
        }
        Command::Children { path, watch: false } => {
            let listed = client.list_children(path);
            Box::pin(async move { Answer::of(of_children(listed.await)) })
        }
        Command::Children { path, watch: true } => {
            let listed = client.list_and_watch_children(path);
            Box::pin(async move {
                match listed.await {
                    Ok((names, watch)) => Answer {
                        reply: of_children(Ok(names)),
                        watch: Some(watch),
                    },
                    Err(error) => Answer::of(of_children(Err(error))),
                }
            })
        }
        Command::Create(path, data, mode) => {
            let create = Operation::Create(path.clone(), Arc::clone(data), *mode);
            write(client, &[create], true)
        }
        Command::Set(path, data, expected) => {
            let set = Operation::Set(path.clone(), Arc::clone(data), *expected);
            write(client, &[set], true)
        }
        Command::Delete(path, expected) => {
            write(client, &[Operation::Delete(path.clone(), *expected)], true)
        }
        Command::Multi(operations) => write(client, operations, false),
    }
}

/// What a write may answer.
type Written = Result<Vec<MultiWriteResult>, MultiWriteError>;

/// Orders itself behind all writes: a majority agrees on it. It changes nothing.
pub fn sync(client: &Client) -> impl Future<Output = Written> + Send + '_ {
    let mut writer = client.new_multi_writer();
    const ANY_VERSION: i32 = -1;
    match writer.add_check_version("/", ANY_VERSION) {
        Ok(()) => Either::Left(writer.commit()),
        Err(error) => Either::Right(ready(Err(error.into()))),
    }
}

fn of_sync(answer: Written) -> Reply {
    match answer {
        Ok(_) => Reply::Synced,
        Err(_) => Reply::Unknown,
    }
}

/// All operations in one write, or none.
fn write<'a>(client: &'a Client, operations: &[Operation], single: bool) -> Answering<'a> {
    let mut writer = client.new_multi_writer();
    for operation in operations {
        // The paths were checked before.
        if add(&mut writer, operation).is_err() {
            return Box::pin(ready(Answer::of(Reply::Unknown)));
        }
    }
    let written = writer.commit();
    Box::pin(async move { Answer::of(of_write(written.await, single)) })
}

fn add(writer: &mut MultiWriter<'_>, operation: &Operation) -> Result<(), Error> {
    let number = |version: &Version| i32::try_from(version.0).unwrap_or(NO_VERSION);
    match operation {
        Operation::Check(path, version) => writer.add_check_version(path, number(version)),
        Operation::Set(path, data, version) => {
            writer.add_set_data(path, data, Some(number(version)))
        }
        Operation::Create(path, data, mode) => {
            let mode = match mode {
                Mode::Persistent => CreateMode::Persistent,
                Mode::Ephemeral => CreateMode::Ephemeral,
                Mode::EphemeralSequential => CreateMode::EphemeralSequential,
            };
            // Who reaches the servers is trusted.
            writer.add_create(path, data, &mode.with_acls(Acls::anyone_all()))
        }
        Operation::Delete(path, version) => writer.add_delete(path, Some(number(version))),
    }
}
