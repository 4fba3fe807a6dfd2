//! The thread of a session.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{sleep, timeout};
use zookeeper_client::{Client, Error, SessionInfo};

use super::request::{self, Answer};
use super::shared::{Serial, Shared};
use super::watches::{Watched, Watches};
use crate::command::Command;

/// How long the end of a session may take that nobody wants any more: then its server finds out by itself.
const CLOSE: Duration = Duration::from_millis(500);

/// A server that answers pings but not a call for so many times the time of the session does so no more: the connection, and
/// the session with it if it must be, are worth less than calls that are answered.
const STUCK_SESSIONS: u32 = 3;

/// Between two tries to reach any server.
const RETRY: Duration = Duration::from_millis(50);

/// A call on its way to the thread.
pub struct Sent {
    pub serial: Serial,
    pub command: Command,
}

/// What the thread has of a session.
pub struct Session {
    pub servers: String,
    pub shared: Arc<Shared>,
    pub calls: mpsc::UnboundedReceiver<Sent>,
    /// Ends when nobody wants the session any more.
    pub unwanted: oneshot::Receiver<()>,
}

enum Served {
    /// Nobody wants the session any more.
    Unwanted,
    /// The client has given up: the session is over, or no server was in reach for long. Or a server answers no calls.
    Lost,
}

impl Session {
    /// Serves until the session is over or unwanted.
    pub async fn run(mut self, mut client: Client) {
        loop {
            match self.serve(&client).await {
                Served::Unwanted => return close(client).await,
                Served::Lost => {}
            }
            match self.take_up(client.into_session()).await {
                Some(next) => client = next,
                None => return,
            }
        }
    }

    async fn serve(&mut self, client: &Client) -> Served {
        let mut states = client.state_watcher();
        let mut watches = Watches::default();
        let mut answers = FuturesUnordered::new();
        let shared = Arc::clone(&self.shared);
        let limit = self.stuck_after();
        let served = loop {
            tokio::select! {
                biased;
                _ = &mut self.unwanted => break Served::Unwanted,
                Some((sent, answer)) = answers.next() => match answer {
                    Ok(answer) => deliver(&shared, &mut watches, sent, answer),
                    Err(_) => {
                        tracing::warn!(?limit, "a server of ZooKeeper answers pings and no calls");
                        break Served::Lost;
                    }
                },
                Some(path) = watches.next() => shared.changed(path),
                state = states.changed() => if state.is_terminated() {
                    break Served::Lost;
                },
                Some(sent) = self.calls.recv() => if shared.is_awaited(sent.serial) {
                    let answer = request::send(client, &sent.command);
                    answers.push(async move { (sent, timeout(limit, answer).await) });
                },
            }
        };
        // The client answers what it has, with errors; what it does not answer is given up in time.
        let rest = async {
            while let Some((sent, answer)) = answers.next().await {
                if let Ok(answer) = answer {
                    deliver(&shared, &mut watches, sent, answer);
                }
            }
        };
        if matches!(served, Served::Lost) {
            let _ = timeout(RETRY, rest).await;
            watches.end().for_each(|path| shared.changed(path));
        }
        served
    }

    fn stuck_after(&self) -> Duration {
        STUCK_SESSIONS * Duration::from_millis(self.shared.session_ms().into())
    }

    /// Takes up a session again that the client has given up, or learns from a server that it is over.
    async fn take_up(&mut self, mut session: SessionInfo) -> Option<Client> {
        loop {
            let connector = Client::connector().with_session(session.clone());
            let limit = Duration::from_millis(self.shared.session_ms().into());
            let connected = connector.with_session_timeout(limit).connect(&self.servers);
            let connected = tokio::select! {
                connected = connected => connected,
                _ = &mut self.unwanted => return None,
            };
            match connected {
                Ok(client) => match self.catch_up(client).await {
                    Ok(client) => return Some(client),
                    Err(again) => session = again?,
                },
                Err(Error::SessionExpired) => {
                    self.shared.expire();
                    return None;
                }
                Err(_) => tokio::select! {
                    () = sleep(RETRY) => {}
                    _ = &mut self.unwanted => return None,
                },
            }
        }
    }

    /// Another server must not show less than the last one did: a client that takes up a session knows nothing of it.
    /// `Err`: the connection was lost for long, too, or answers no calls (with the session), or the session is unwanted.
    async fn catch_up(&mut self, client: Client) -> Result<Client, Option<SessionInfo>> {
        loop {
            let synced = tokio::select! {
                synced = timeout(self.stuck_after(), request::sync(&client)) => synced,
                _ = &mut self.unwanted => {
                    close(client).await;
                    return Err(None);
                }
            };
            match synced {
                Ok(Ok(_)) => return Ok(client),
                Ok(Err(_)) => {}
                Err(_) => {
                    tracing::warn!("a server of ZooKeeper takes up a session and answers no calls");
                    return Err(Some(client.into_session()));
                }
            }
            if client.state().is_terminated() {
                return Err(Some(client.into_session()));
            }
            sleep(RETRY).await;
        }
    }
}

fn deliver(shared: &Shared, watches: &mut Watches, sent: Sent, answer: Answer) {
    // A call that was given up sets no watch: nobody knows of it.
    if let Some(watcher) = answer.watch
        && shared.is_awaited(sent.serial)
    {
        match sent.command {
            Command::Get { path, .. } => watches.set(Watched::Node(path), watcher),
            Command::Children { path, .. } => watches.set(Watched::Children(path), watcher),
            _ => {}
        }
    }
    shared.reply(sent.serial, answer.reply);
}

/// Ends the session, so that its ephemeral nodes go at once.
async fn close(client: Client) {
    let mut states = client.state_watcher();
    drop(client);
    let closed = async { while !states.changed().await.is_terminated() {} };
    let _ = timeout(CLOSE, closed).await;
}
