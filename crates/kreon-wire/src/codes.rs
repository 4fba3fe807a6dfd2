//! Enumerations with one byte each.

/// An enumeration with its codes. `of` is its inverse, and refuses codes without a meaning.
macro_rules! codes {
    ($(#[$doc:meta])* $name:ident { $($(#[$case:meta])+ $variant:ident = $code:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum $name { $($(#[$case])+ $variant = $code,)+ }

        impl $name {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$variant,)+];

            /// The one with this code. `FieldValue` if there is none.
            pub const fn of(code: u8) -> Result<Self, $crate::violation::Violation> {
                match code {
                    $($code => Ok(Self::$variant),)+
                    _ => Err($crate::violation::Violation::FieldValue),
                }
            }
        }
    };
}

pub(crate) use codes;
