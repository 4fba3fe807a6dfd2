//! Watches that are set.

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;

use futures_util::StreamExt;
use futures_util::future::{AbortHandle, Abortable};
use futures_util::stream::FuturesUnordered;
use zookeeper_client::OneshotWatcher;

/// What is watched.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Watched {
    Node(String),
    Children(String),
}

impl Watched {
    fn path(self) -> String {
        match self {
            Self::Node(path) | Self::Children(path) => path,
        }
    }
}

type Firing = Pin<Box<dyn Future<Output = (Watched, bool)> + Send>>;

/// At most one watch for each path and kind, however often it was set: the latest.
#[derive(Default)]
pub struct Watches {
    set: HashMap<Watched, AbortHandle>,
    firing: FuturesUnordered<Firing>,
}

impl Watches {
    /// Sets a watch. An earlier one of the same is dropped, even if it has just fired: the answer that came with this one
    /// shows that change already.
    pub fn set(&mut self, watched: Watched, watcher: OneshotWatcher) {
        let (abort, registration) = AbortHandle::new_pair();
        let fired = Abortable::new(watcher.changed(), registration);
        let key = watched.clone();
        self.firing
            .push(Box::pin(async move { (key, fired.await.is_ok()) }));
        if let Some(earlier) = self.set.insert(watched, abort) {
            earlier.abort();
        }
    }

    /// The next path that changed; none if nothing is watched.
    pub async fn next(&mut self) -> Option<String> {
        while let Some((watched, fired)) = self.firing.next().await {
            // Else it was dropped for a later one.
            if fired {
                self.set.remove(&watched);
                return Some(watched.path());
            }
        }
        None
    }

    /// Ends all watches, and tells the paths.
    pub fn end(self) -> impl Iterator<Item = String> {
        self.set.into_keys().map(Watched::path)
    }
}
