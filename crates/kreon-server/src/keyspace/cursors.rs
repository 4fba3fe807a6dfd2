//! Cursors of `SCAN` and its like: a number stands for the key behind which a scan goes on.

use std::collections::{HashMap, VecDeque};

use parking_lot::Mutex;

use super::random::Random;

/// Cursors that are remembered; the oldest go.
pub(crate) const CURSORS_MAX: usize = 16_384;
/// Bytes of keys that are remembered.
const BYTES_MAX: usize = 16 << 20;

/// The cursors of all connections. They end with the server.
#[derive(Debug)]
pub(crate) struct Cursors {
    table: Mutex<Table>,
}

#[derive(Debug)]
struct Table {
    next: u64,
    places: HashMap<u64, Vec<u8>>,
    /// From the oldest on.
    order: VecDeque<u64>,
    bytes: usize,
}

impl Cursors {
    pub(crate) fn new(random: &Random) -> Self {
        let table = Table {
            // A cursor of an earlier run of the server is unknown to this one, most likely. Below 2^53, which every client can
            // represent.
            next: random.below(1 << 52).max(1),
            places: HashMap::new(),
            order: VecDeque::new(),
            bytes: 0,
        };
        Self {
            table: Mutex::new(table),
        }
    }

    /// A number for the scan that goes on behind `place`.
    pub(crate) fn remember(&self, place: Vec<u8>) -> u64 {
        let table = &mut *self.table.lock();
        let cursor = table.next;
        table.next += 1;
        table.bytes += place.len();
        table.places.insert(cursor, place);
        table.order.push_back(cursor);
        while table.order.len() > CURSORS_MAX || table.bytes > BYTES_MAX {
            let Some(oldest) = table.order.pop_front() else {
                break;
            };
            let forgotten = table.places.remove(&oldest);
            table.bytes -= forgotten.map_or(0, |place| place.len());
        }
        cursor
    }

    /// The place of a cursor, which stays valid; `None` if it is unknown or was forgotten.
    pub(crate) fn find(&self, cursor: u64) -> Option<Vec<u8>> {
        self.table.lock().places.get(&cursor).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn oldest_cursors_are_forgotten() {
        let cursors = Cursors::new(&Random::new());
        let first = cursors.remember(b"a".to_vec());
        assert_eq!(cursors.find(first).as_deref(), Some(b"a".as_slice()));
        let mut last = first;
        for _ in 0..CURSORS_MAX {
            last = cursors.remember(b"b".to_vec());
        }
        assert_eq!(cursors.find(first), None);
        assert!(cursors.find(last).is_some());
        cursors.remember(vec![0; BYTES_MAX]);
        assert_eq!(cursors.find(last), None);
        assert_eq!(cursors.table.lock().bytes, BYTES_MAX);
    }
}
