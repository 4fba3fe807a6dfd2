//! The command line of damage, of every engine.

use clap::Args;

use super::Extent;

/// Which damage is done.
#[derive(Args, Clone, Debug)]
pub struct DamageArguments {
    /// Of all damage one in so many is done.
    #[arg(long, default_value_t = 1)]
    stride: usize,
    /// Ends with the first failure.
    #[arg(long)]
    first: bool,
    /// Only this store, with the damage of `hurt`.
    #[arg(long, requires = "hurt")]
    fixture: Option<String>,
    /// Only this damage, as a failure says.
    #[arg(long, requires = "fixture")]
    hurt: Option<String>,
}

impl DamageArguments {
    /// The store and the damage of a failure that is to be seen again.
    pub fn single(&self) -> Option<(&str, &str)> {
        self.fixture.as_deref().zip(self.hurt.as_deref())
    }

    /// How much is done without one.
    pub fn extent(&self) -> Extent {
        Extent {
            stride: self.stride,
            stops_at_first: self.first,
            ..Extent::default()
        }
    }
}
