//! What is done with a value that was read: shown, owned, or put into a buffer.

use kreon_base::Result;

/// What becomes of a value that was found.
pub trait TakeValue: Sized {
    /// What it becomes.
    type Taken;

    /// Takes a value where it stands.
    fn take(self, value: &[u8]) -> Self::Taken;

    /// Takes a value of several fragments, which `fill` puts together in a vector.
    ///
    /// # Errors
    /// Those of `fill`.
    fn assemble(self, fill: impl FnOnce(&mut Vec<u8>) -> Result<()>) -> Result<Self::Taken> {
        let mut value = Vec::new();
        fill(&mut value)?;
        Ok(self.take(&value))
    }
}

/// Shows the value to a closure.
pub struct Show<F>(pub F);

impl<R, F: FnOnce(&[u8]) -> R> TakeValue for Show<F> {
    type Taken = R;

    fn take(self, value: &[u8]) -> R {
        (self.0)(value)
    }
}

/// Takes the value as bytes of its own, in memory of its length.
pub struct Own;

impl TakeValue for Own {
    type Taken = Vec<u8>;

    fn take(self, value: &[u8]) -> Vec<u8> {
        value.to_vec()
    }

    fn assemble(self, fill: impl FnOnce(&mut Vec<u8>) -> Result<()>) -> Result<Vec<u8>> {
        let mut value = Vec::new();
        fill(&mut value)?;
        value.shrink_to_fit();
        Ok(value)
    }
}

/// Puts the value into a buffer, in place of what is there.
pub struct Fill<'a>(pub &'a mut Vec<u8>);

impl TakeValue for Fill<'_> {
    type Taken = ();

    fn take(self, value: &[u8]) {
        self.0.clear();
        self.0.extend_from_slice(value);
    }

    fn assemble(self, fill: impl FnOnce(&mut Vec<u8>) -> Result<()>) -> Result<()> {
        fill(self.0)
    }
}
