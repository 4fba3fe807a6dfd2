//! Gets that came together and wait for the device: all of them are in flight at once.

use std::future::poll_fn;
use std::mem;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use bytes::Bytes;
use futures_util::future::{join, join_all, maybe_done};

use super::connection::Connection;
use crate::command::{Command, execute};
use crate::keyspace::{Client, Keyspace};
use crate::reply::Reply;
use crate::resp::Parsed;

/// Reads in flight for one connection.
const TOGETHER_MAX: usize = 64;
/// No further read is begun when the values that have come already have so many bytes.
const TOGETHER_BYTES_MAX: usize = 1 << 20;

impl Connection {
    /// The replies to a `GET`, and, if that waits for the device, to those that follow it directly. What was parsed behind them
    /// is left in `ahead` and `args` of the connection.
    pub(super) async fn get(
        &mut self,
        command: &'static Command,
        args: &[Bytes],
    ) -> (Reply, Vec<Reply>) {
        let Self {
            session,
            parser,
            input,
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
            let (mut more, mut bytes) = (Vec::new(), 0);
            while more.len() + 1 < TOGETHER_MAX && bytes < TOGETHER_BYTES_MAX {
                match parser.next(input, &mut behind) {
                    Ok(Parsed::Request) if is_get(&behind) => {
                        let get = get(keyspace, client, command, mem::take(&mut behind));
                        let mut get = Box::pin(maybe_done(get));
                        // What is in memory, and a long value, comes at once.
                        let poll = poll_fn(|context| Poll::Ready(get.as_mut().poll(context)));
                        if poll.await.is_ready() {
                            let reply = get.as_mut().output_mut();
                            bytes += reply.map_or(0, |reply| reply.bytes());
                        }
                        more.push(get);
                    }
                    Ok(Parsed::Incomplete { .. }) => break,
                    other => {
                        *ahead = Some(other);
                        break;
                    }
                }
            }
            let (first, _) = join(first, join_all(more.iter_mut())).await;
            let more = more
                .iter_mut()
                .filter_map(|get| get.as_mut().take_output())
                .collect();
            (first, more)
        };
        self.args = behind;
        replies
    }
}

/// A `GET` that owns its arguments.
async fn get(
    keyspace: &Arc<Keyspace>,
    client: &Client,
    command: &'static Command,
    args: Vec<Bytes>,
) -> Reply {
    execute(keyspace, client, command, &args).await
}

fn is_get(args: &[Bytes]) -> bool {
    matches!(args, [name, _] if name.eq_ignore_ascii_case(b"get"))
}
