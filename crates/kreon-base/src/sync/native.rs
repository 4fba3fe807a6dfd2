//! The standard library's primitives.

pub use std::hint::spin_loop;
pub use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, fence};
pub use std::thread::yield_now;

use super::SetAlone;

macro_rules! set_alone {
    ($($atomic:ty: $value:ty),*) => {$(
        impl SetAlone<$value> for $atomic {
            #[inline]
            fn set_alone(&mut self, value: $value) {
                *self.get_mut() = value;
            }
        }
    )*};
}

set_alone!(AtomicBool: bool, AtomicU32: u32, AtomicU64: u64, AtomicUsize: usize);
