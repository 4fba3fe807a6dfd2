//! What can be wrong with a packet, in 24 classes, and their counts.

use std::fmt;

use kreon_base::Error;

macro_rules! violations {
    ($($(#[doc = $doc:literal])+ $name:ident,)+) => {
        /// Why a packet is refused. The receiver counts it and closes the link: what follows on it cannot be trusted.
        ///
        /// The first check that fails is told. [`Header::decode`](crate::Header::decode) finds the classes up to
        /// [`TermMisplaced`](Self::TermMisplaced), and missing or needless numbers, before anything is allocated for what
        /// follows the header. [`Header::verify`](crate::Header::verify) finds those up to
        /// [`Checksum`](Self::Checksum), [`Inlet`](crate::Inlet), [`Outlet`](crate::Outlet) and
        /// [`State`](crate::State) those up to `Number`. Whatever decodes the body finds the others, and
        /// the two ends of a stream the last ones.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum Violation { $($(#[doc = $doc])+ $name,)+ }

        impl Violation {
            /// All classes, in the order of their numbers.
            pub const ALL: [Self; 24] = [$(Self::$name,)+];

            /// What is wrong, for people.
            pub const fn told(self) -> &'static str {
                match self { $(Self::$name => concat!($($doc,)+).trim_ascii(),)+ }
            }

            /// Name of the class, as statistics show it.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => stringify!($name),)+ }
            }
        }
    };
}

violations! {
    /// Fewer bytes than a header has.
    Short,
    /// The first four bytes are not those of a packet.
    Magic,
    /// A version of the messages that this build does not know.
    Version,
    /// No kind of packet has this code.
    UnknownKind,
    /// This kind is not for links of this role.
    KindForRole,
    /// Reserved bits of the header are not zero.
    ReservedBits,
    /// More bytes behind the header than links of this role carry.
    TooLong,
    /// A number of bytes behind the header that this kind never has.
    Length,
    /// A group where this kind names none, or none where it must name one.
    GroupMisplaced,
    /// A term where this kind has none, none where it must have one, or one beyond the last.
    TermMisplaced,
    /// Fewer bytes behind the header than it says.
    Cut,
    /// More bytes behind the header than it says.
    Excess,
    /// The checksum over header and body does not fit.
    Checksum,
    /// The packet is for another group than that of the stream.
    OtherGroup,
    /// The packet is of another term than the stream.
    OtherTerm,
    /// This kind is for links of this role, but not in this state.
    KindForState,
    /// A number where this kind has none, none where it must have one, or not the one behind the last of the stream.
    Number,
    /// Reserved bits of the body are not zero.
    FieldBits,
    /// A field holds a value outside its range, or a code without a meaning.
    FieldValue,
    /// A list or text is longer than allowed or than the bytes that are left, or bytes are left behind the last field.
    Count,
    /// Entries of a list are out of order, or numbers of one packet contradict each other or earlier ones.
    Order,
    /// An offset or a length is not aligned as this kind demands.
    Alignment,
    /// The range does not lie within the volume.
    Range,
    /// More bytes were sent than the receiver granted.
    Credit,
}

impl Violation {
    /// Its number, 0 to 23: an index into [`Violation::ALL`].
    pub const fn index(self) -> usize {
        self as usize
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name(), self.told())
    }
}

impl std::error::Error for Violation {}

impl From<Violation> for Error {
    /// `Corruption`: the bytes cannot be trusted, and nor can what follows them.
    fn from(violation: Violation) -> Self {
        Self::corruption(format!("message refused, {violation}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_class_has_its_place_and_says_what_it_is() {
        for (index, violation) in Violation::ALL.into_iter().enumerate() {
            assert_eq!(violation.index(), index);
            assert!(violation.told().ends_with('.'), "{violation}");
        }
    }
}
