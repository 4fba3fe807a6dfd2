//! Gets that came together and wait for the device: all of them are in flight at once.

use std::future::poll_fn;
use std::mem;
use std::pin::pin;
use std::task::Poll;

use bytes::Bytes;
use futures_util::future::{join, join_all};

use super::connection::Connection;
use crate::command::{Command, execute};
use crate::reply::Reply;
use crate::resp::Parsed;

/// Reads in flight for one connection.
const TOGETHER_MAX: usize = 64;

impl Connection {
    /// The replies to the `GET` in `args`, and, if that waits for the device, to those that follow it directly. What was
    /// parsed behind them is left in `ahead` and `args`.
    pub(super) async fn get(&mut self, command: &'static Command) -> (Reply, Vec<Reply>) {
        let Self {
            session,
            parser,
            input,
            args,
            ahead,
            worker,
            ..
        } = self;
        let (keyspace, client) = (&worker.shared.keyspace, &session.client);
        let mut behind = Vec::new();
        let replies = {
            let mut first = pin!(execute(keyspace, client, command, args));
            let at_once = poll_fn(|context| Poll::Ready(first.as_mut().poll(context))).await;
            if let Poll::Ready(reply) = at_once {
                return (reply, Vec::new());
            }
            let mut more: Vec<Vec<Bytes>> = Vec::new();
            while more.len() + 1 < TOGETHER_MAX {
                match parser.next(input, &mut behind) {
                    Ok(Parsed::Request) if is_get(&behind) => more.push(mem::take(&mut behind)),
                    Ok(Parsed::Incomplete { .. }) => break,
                    other => {
                        *ahead = Some(other);
                        break;
                    }
                }
            }
            let more = more
                .iter()
                .map(|args| execute(keyspace, client, command, args));
            join(first, join_all(more)).await
        };
        *args = behind;
        replies
    }
}

fn is_get(args: &[Bytes]) -> bool {
    matches!(args, [name, _] if name.eq_ignore_ascii_case(b"get"))
}
