//! A mirror that lands and makes durable what a test tells it to.

use kreon_sync::Condvar;

use super::*;

/// The other member.
pub(super) struct Twin {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    landed: Lsn,
    durable: Lsn,
    failure: Option<Error>,
    grown: usize,
    /// Positions that [`LogMirror::begin_sync`] and [`LogMirror::sync`] were called with.
    begun: Vec<Lsn>,
    asked: Vec<Lsn>,
    /// What `sync` answers, whatever is durable.
    answer: Option<Lsn>,
}

impl Twin {
    pub fn new() -> Arc<Self> {
        let state = State {
            landed: LOG_START,
            durable: LOG_START,
            failure: None,
            grown: 0,
            begun: Vec::new(),
            asked: Vec::new(),
            answer: None,
        };
        Arc::new(Self {
            state: Mutex::new(state),
            changed: Condvar::new(),
        })
    }

    pub fn as_mirror(self: &Arc<Self>) -> Option<Arc<dyn LogMirror>> {
        Some(Arc::clone(self) as Arc<dyn LogMirror>)
    }

    /// Lands everything before `lsn`, and tells the log.
    pub fn land(&self, log: &Log, lsn: Lsn) {
        self.state.lock().landed = lsn;
        log.mirror_landed();
    }

    pub fn make_durable(&self, lsn: Lsn) {
        self.state.lock().durable = lsn;
        self.changed.notify_all();
    }

    /// Answers `lsn` to the next calls, at once.
    pub fn answer(&self, lsn: Lsn) {
        self.state.lock().answer = Some(lsn);
        self.changed.notify_all();
    }

    pub fn fail(&self, error: Error) {
        self.state.lock().failure = Some(error);
        self.changed.notify_all();
    }

    pub fn grown(&self) -> usize {
        self.state.lock().grown
    }

    pub fn begun(&self) -> Vec<Lsn> {
        self.state.lock().begun.clone()
    }

    /// Waits until `sync` was called for the `count`-th time; with what.
    pub fn wait_until_asked(&self, count: usize) -> Lsn {
        let mut state = self.state.lock();
        while state.asked.len() < count {
            self.changed.wait(&mut state);
        }
        state.asked[count - 1]
    }
}

impl LogMirror for Twin {
    fn grown(&self) {
        self.state.lock().grown += 1;
    }

    fn landed(&self) -> Lsn {
        self.state.lock().landed
    }

    fn begin_sync(&self, upto: Lsn) {
        self.state.lock().begun.push(upto);
    }

    fn sync(&self, upto: Lsn) -> Result<Lsn> {
        let mut state = self.state.lock();
        state.asked.push(upto);
        self.changed.notify_all();
        loop {
            if let Some(error) = &state.failure {
                return Err(error.clone());
            }
            if let Some(answer) = state.answer {
                return Ok(answer);
            }
            if state.durable >= upto {
                return Ok(state.durable);
            }
            self.changed.wait(&mut state);
        }
    }

    fn durable(&self) -> Lsn {
        self.state.lock().durable
    }
}
