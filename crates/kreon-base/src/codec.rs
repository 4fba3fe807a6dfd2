//! How the bytes of a value are packed.

/// How the bytes of a value are packed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Codec {
    /// As they are.
    #[default]
    None,
    /// One LZ4 block: the fastest.
    Lz4,
    /// One Zstandard frame: smaller, at several times the processor time.
    Zstd,
}

impl Codec {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::None, Self::Lz4, Self::Zstd];

    /// Its byte in the format.
    #[inline]
    pub const fn code(self) -> u8 {
        match self {
            Self::None => 0,
            Self::Lz4 => 1,
            Self::Zstd => 2,
        }
    }

    /// The codec of a byte; `None` if this build knows none.
    #[inline]
    pub const fn of_code(code: u8) -> Option<Self> {
        match code {
            0 => Some(Self::None),
            1 => Some(Self::Lz4),
            2 => Some(Self::Zstd),
            _ => None,
        }
    }

    /// Its name in commands, options and statistics: `none`, `lz4`, `zstd`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Lz4 => "lz4",
            Self::Zstd => "zstd",
        }
    }
}
