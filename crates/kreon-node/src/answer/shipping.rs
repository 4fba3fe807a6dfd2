//! Writes of one thread that go to the members together, by the thread itself.

use std::cell::RefCell;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::{Duration, Instant};

use kreon_replica::mirror::Mirror;

/// Writes up to this length are sent by the thread that appends them; longer ones by the tap's, meanwhile.
pub const OWN_BYTES_MAX: usize = 16 << 10;

/// Not more than this waits. A mirror's log may wait for the members when there is much more that was not sent.
const WAITING_BYTES_MAX: usize = 32 << 10;

/// Nor for longer, while the thread does other things than writes.
const WAITING_MAX: Duration = Duration::from_micros(100);

/// What was appended to one log and not sent.
struct Appended {
    mirror: Arc<Mirror>,
    bytes: usize,
    since: Instant,
}

#[derive(Default)]
struct State {
    is_begun: bool,
    appended: Vec<Appended>,
}

thread_local! {
    static STATE: RefCell<State> = RefCell::default();
}

/// Until this is dropped, short writes of this thread are sent to the members by itself: at the end, or when there is enough.
pub struct Shipping {
    /// Of the thread that began it.
    _own: PhantomData<*const ()>,
}

impl Shipping {
    /// Begins.
    #[must_use = "what was appended is sent when it is dropped"]
    pub fn begin() -> Self {
        STATE.with_borrow_mut(|state| state.is_begun = true);
        Self { _own: PhantomData }
    }

    /// Appends `bytes` by `append` to the log that `mirror` sends. Without one the tap sends it.
    pub fn append<T>(mirror: Option<Arc<Mirror>>, bytes: usize, append: impl FnOnce() -> T) -> T {
        let is_begun = STATE.with_borrow(|state| state.is_begun);
        let Some(mirror) = mirror.filter(|_| is_begun) else {
            return append();
        };
        let outcome = mirror.append_here(append);
        let full = STATE.with_borrow_mut(|state| state.note(mirror, bytes));
        if let Some(full) = full {
            full.mirror.ship_appended();
        }
        outcome
    }

    /// Something else than a write comes, which may take its time.
    pub fn before_other() {
        let late = STATE.with_borrow_mut(|state| {
            let is_late = |appended: &mut Appended| appended.since.elapsed() > WAITING_MAX;
            match state.appended.is_empty() {
                true => Vec::new(),
                false => state.appended.extract_if(.., is_late).collect(),
            }
        });
        for appended in late {
            appended.mirror.ship_appended();
        }
    }
}

impl State {
    /// Notes what was appended, and takes it out if that is enough.
    fn note(&mut self, mirror: Arc<Mirror>, bytes: usize) -> Option<Appended> {
        let is_it = |appended: &Appended| Arc::ptr_eq(&appended.mirror, &mirror);
        let at = self.appended.iter().position(is_it);
        let at = at.unwrap_or_else(|| {
            self.appended.push(Appended {
                mirror,
                bytes: 0,
                since: Instant::now(),
            });
            self.appended.len() - 1
        });
        let appended = self.appended.get_mut(at)?;
        appended.bytes += bytes;
        (appended.bytes >= WAITING_BYTES_MAX).then(|| self.appended.swap_remove(at))
    }
}

impl Drop for Shipping {
    fn drop(&mut self) {
        let appended = STATE.with_borrow_mut(|state| std::mem::take(state).appended);
        appended
            .iter()
            .for_each(|appended| appended.mirror.ship_appended());
    }
}

#[cfg(test)]
mod tests {
    use kreon_base::Lsn;
    use kreon_replica::machine::Term;
    use kreon_wire::GroupId;

    use super::*;

    fn mirror() -> Arc<Mirror> {
        Mirror::new(GroupId(1), Term(1), Lsn(0))
    }

    fn waiting() -> Vec<usize> {
        STATE.with_borrow(|state| state.appended.iter().map(|a| a.bytes).collect())
    }

    #[test]
    fn what_waits_is_bounded_for_each_log_and_leaves_at_the_end() {
        let (one, other) = (mirror(), mirror());
        let shipping = Shipping::begin();
        for bytes in [100, 200] {
            Shipping::append(Some(Arc::clone(&one)), bytes, || ());
        }
        assert_eq!(Shipping::append(Some(other), 50, || 7), 7);
        assert_eq!(waiting(), [300, 50]);
        Shipping::append(Some(one), WAITING_BYTES_MAX, || ());
        assert_eq!(waiting(), [50]);
        drop(shipping);
        assert!(waiting().is_empty());
    }

    #[test]
    fn outside_of_it_nothing_waits() {
        Shipping::append(Some(mirror()), 100, || ());
        assert!(waiting().is_empty());
        let _shipping = Shipping::begin();
        Shipping::append(None, 100, || ());
        assert!(waiting().is_empty(), "without a mirror the tap sends");
    }

    #[test]
    fn what_waits_for_long_leaves_before_other_work() {
        let _shipping = Shipping::begin();
        Shipping::append(Some(mirror()), 100, || ());
        std::thread::sleep(2 * WAITING_MAX);
        Shipping::before_other();
        assert!(waiting().is_empty());
    }
}
