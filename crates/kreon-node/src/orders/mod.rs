//! Orders of operators: what the server in the master's office writes for them.
//!
//! Each step is a compare-and-set that checks the office (`fence`), so a deposed master writes nothing; and each order can be
//! given again after a lost answer, or to the next master.

mod clerk;
mod configs;
mod leaving;
mod loads;
mod losses;
mod members;
mod order;
mod planned;
mod running;
mod tables;
mod thread;

pub use loads::limits_path;
pub use order::Given;
pub use thread::Orders;

use kreon_wire::{FailureKind, ServerId};

/// Why an order is not carried out.
#[derive(Debug)]
pub struct Refusal {
    pub kind: FailureKind,
    pub text: String,
    /// Of `NotMaster`: who may be.
    pub master: ServerId,
}

impl Refusal {
    pub fn new(kind: FailureKind, text: impl Into<String>) -> Self {
        Self {
            kind,
            text: text.into(),
            master: ServerId(0),
        }
    }
}

impl From<kreon_base::Error> for Refusal {
    /// The coordinator did not answer: whether it is done shows when the order is given again.
    fn from(error: kreon_base::Error) -> Self {
        let kind = match error.kind() {
            kreon_base::ErrorKind::InvalidArgument => FailureKind::InvalidArgument,
            _ => FailureKind::Unavailable,
        };
        Self::new(kind, error.to_string())
    }
}

impl From<kreon_wire::Violation> for Refusal {
    fn from(violation: kreon_wire::Violation) -> Self {
        Self::new(FailureKind::Corruption, violation.to_string())
    }
}

/// What becomes of an order.
pub type Outcome<T = ()> = Result<T, Refusal>;
