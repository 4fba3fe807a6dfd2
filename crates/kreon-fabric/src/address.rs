//! Where a server listens.

use std::fmt;
use std::sync::Arc;

/// Where a server listens, in the words of its fabric: `"10.0.0.7:7400"` or `"[::1]:7400"` for TCP (never a name, which
/// would have to be looked up), any word for the simulated one.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address(Arc<str>);

impl Address {
    /// An address. Whether it means anything is seen where it is used.
    pub fn new(text: &str) -> Self {
        Self(text.into())
    }

    /// Its words.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Address({})", self.0)
    }
}
