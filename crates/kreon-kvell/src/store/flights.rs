//! Transfers of several partitions in one queue.

/// Which transfer of which partition has which tag in the queue of a worker.
pub struct Flights {
    /// A transfer's index is its tag in the queue.
    slots: Vec<Option<Flight>>,
    free: Vec<usize>,
}

/// A transfer in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flight {
    /// Number of the partition among those of the worker.
    pub partition: usize,
    /// What the partition calls it.
    pub tag: u64,
}

impl Flights {
    /// Up to `depth` in flight.
    pub fn new(depth: usize) -> Self {
        Self {
            slots: vec![None; depth],
            free: (0..depth).rev().collect(),
        }
    }

    /// Transfers that may depart.
    pub fn room(&self) -> usize {
        self.free.len()
    }

    /// The tag in the queue of a transfer that departs. Beyond the depth the table grows.
    pub fn depart(&mut self, flight: Flight) -> u64 {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() - 1
        });
        if let Some(place) = self.slots.get_mut(slot) {
            *place = Some(flight);
        }
        slot as u64
    }

    /// The transfer that has arrived; `None` if none of this tag is in flight.
    pub fn arrive(&mut self, tag: u64) -> Option<Flight> {
        let slot = usize::try_from(tag).ok()?;
        let flight = self.slots.get_mut(slot)?.take()?;
        self.free.push(slot);
        Some(flight)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_transfer_arrives_once_and_makes_room() {
        let mut flights = Flights::new(2);
        let one = Flight {
            partition: 0,
            tag: 7,
        };
        let other = Flight {
            partition: 1,
            tag: 7,
        };
        let (first, second) = (flights.depart(one), flights.depart(other));
        assert_eq!(flights.room(), 0);
        assert_eq!(flights.arrive(first), Some(one));
        assert_eq!((flights.arrive(first), flights.room()), (None, 1));
        assert_eq!(flights.arrive(second), Some(other));
        assert_eq!(flights.arrive(99), None);
    }
}
