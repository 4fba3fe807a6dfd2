//! How a scan hands over a pair: in place, or assembled in memory of the caller.

use kreon_base::Result;

use kreon_log::TakeValue;

/// What becomes of a pair that a scan shows.
pub trait TakePair: Sized {
    /// What it becomes.
    type Taken;

    /// Takes a pair where it stands.
    fn take(self, key: &[u8], value: &[u8]) -> Self::Taken;

    /// Takes a pair with a value of several fragments, which `fill` puts together in a vector.
    ///
    /// # Errors
    /// Those of `fill`.
    fn assemble(
        self,
        key: &[u8],
        fill: impl FnOnce(&mut Vec<u8>) -> Result<()>,
    ) -> Result<Self::Taken>;
}

/// Shows the pair to a closure.
pub struct ShowPair<F>(pub F);

impl<R, F: FnOnce(&[u8], &[u8]) -> R> TakePair for ShowPair<F> {
    type Taken = R;

    fn take(self, key: &[u8], value: &[u8]) -> R {
        (self.0)(key, value)
    }

    fn assemble(self, key: &[u8], fill: impl FnOnce(&mut Vec<u8>) -> Result<()>) -> Result<R> {
        let mut value = Vec::new();
        fill(&mut value)?;
        Ok((self.0)(key, &value))
    }
}

/// The value of a pair whose key is known.
pub struct WithKey<'a, T> {
    /// The key.
    pub key: &'a [u8],
    /// Takes the pair.
    pub take: T,
}

impl<T: TakePair> TakeValue for WithKey<'_, T> {
    type Taken = T::Taken;

    fn take(self, value: &[u8]) -> T::Taken {
        self.take.take(self.key, value)
    }

    fn assemble(self, fill: impl FnOnce(&mut Vec<u8>) -> Result<()>) -> Result<T::Taken> {
        self.take.assemble(self.key, fill)
    }
}
