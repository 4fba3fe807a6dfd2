//! One moment that many reads tell of: an open snapshot, or a scan.

use std::collections::BTreeMap;

use kreon_judge::{Call, Register, Seen};

/// What was read of one moment, at any time later.
pub struct Moment {
    what: &'static str,
    invoked: u64,
    returned: u64,
    reads: BTreeMap<Register, Seen>,
}

impl Moment {
    /// A moment between these two.
    pub fn new(what: &'static str, invoked: u64, returned: u64) -> Self {
        Self {
            what,
            invoked,
            returned,
            reads: BTreeMap::new(),
        }
    }

    /// A read says this.
    ///
    /// # Errors
    /// Another read of the same moment said otherwise.
    pub fn learn(&mut self, register: Register, seen: Seen) -> Result<(), String> {
        let known = self.reads.get(&register).copied();
        let all = match (known, seen) {
            (None, seen) | (Some(Seen::Present), seen @ Seen::Version(_)) => seen,
            (Some(known), seen) if known == seen => seen,
            (Some(known @ Seen::Version(_)), Seen::Present) => known,
            (Some(known), seen) => {
                return Err(format!(
                    "a {} of [{}, {}] changed: register {register:#x} was {known:?}, is {seen:?}",
                    self.what, self.invoked, self.returned
                ));
            }
        };
        self.reads.insert(register, all);
        Ok(())
    }

    /// What is known of a register.
    pub fn known(&self, register: Register) -> Option<Seen> {
        self.reads.get(&register).copied()
    }

    /// The call that tells all of it.
    pub fn into_call(self, client: u32) -> Call {
        Call {
            client,
            reads: self.reads.into_iter().collect(),
            ..Call::read(self.what, self.invoked, self.returned)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_does_not_change() {
        let mut moment = Moment::new("snapshot", 1, 2);
        assert!(moment.learn(1, Seen::Present).is_ok());
        assert!(moment.learn(1, Seen::Version(5)).is_ok());
        assert!(moment.learn(1, Seen::Present).is_ok());
        assert!(moment.learn(1, Seen::Version(6)).is_err());
        assert!(moment.learn(1, Seen::Absent).is_err());
        assert_eq!(moment.into_call(0).reads, [(1, Seen::Version(5))]);
    }
}
