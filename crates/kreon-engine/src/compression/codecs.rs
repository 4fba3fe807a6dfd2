//! The codecs themselves. LZ4 is Rust without unsafe code; Zstandard is the library in C, in builds with the feature
//! `zstd`.

use kreon_base::Codec;

/// Whether this build has the codec.
pub fn has(codec: Codec) -> bool {
    match codec {
        Codec::None | Codec::Lz4 => true,
        Codec::Zstd => cfg!(feature = "zstd"),
    }
}

/// Appends `value`, packed; `false`: this build cannot, and `out` holds anything behind what it held.
pub fn pack(codec: Codec, value: &[u8], out: &mut Vec<u8>) -> bool {
    match codec {
        Codec::None => false,
        Codec::Lz4 => {
            let start = out.len();
            out.resize(
                start + lz4_flex::block::get_maximum_output_size(value.len()),
                0,
            );
            let room = out.get_mut(start..).unwrap_or_default();
            let packed = lz4_flex::block::compress_into(value, room);
            packed.is_ok_and(|bytes| {
                out.truncate(start + bytes);
                true
            })
        }
        Codec::Zstd => zstandard::pack(value, out),
    }
}

/// Puts the value of `length` bytes that was packed into the empty `out`; `false`: there is no such value.
pub fn unpack(codec: Codec, packed: &[u8], length: usize, out: &mut Vec<u8>) -> bool {
    match codec {
        Codec::None => false,
        Codec::Lz4 => {
            out.resize(length, 0);
            let bytes = lz4_flex::block::decompress_into(packed, out);
            bytes.is_ok_and(|bytes| bytes == length)
        }
        Codec::Zstd => zstandard::unpack(packed, length, out),
    }
}

#[cfg(feature = "zstd")]
mod zstandard {
    use std::cell::RefCell;

    use zstd::bulk::{Compressor, Decompressor};

    /// The fastest level: the next ones save a hundredth and take half as long again (docs/decisions/045).
    const LEVEL: i32 = 1;

    thread_local! {
        /// To make one costs more than to pack a short value. `None`: there was no memory for it.
        static COMPRESSOR: RefCell<Option<Compressor<'static>>> =
            RefCell::new(Compressor::new(LEVEL).ok());
        static DECOMPRESSOR: RefCell<Option<Decompressor<'static>>> =
            RefCell::new(Decompressor::new().ok());
    }

    pub fn pack(value: &[u8], out: &mut Vec<u8>) -> bool {
        // It is gone while the thread ends: then values stay as they are.
        let packed = COMPRESSOR.try_with(|compressor| {
            let mut compressor = compressor.try_borrow_mut().ok()?;
            let start = out.len();
            out.resize(start + zstd::zstd_safe::compress_bound(value.len()), 0);
            let room = out.get_mut(start..).unwrap_or_default();
            let bytes = compressor.as_mut()?.compress_to_buffer(value, room).ok()?;
            out.truncate(start + bytes);
            Some(())
        });
        packed.is_ok_and(|packed| packed.is_some())
    }

    pub fn unpack(packed: &[u8], length: usize, out: &mut Vec<u8>) -> bool {
        out.resize(length, 0);
        let unpack = |decompressor: &mut Decompressor<'_>, out: &mut [u8]| {
            let bytes = decompressor.decompress_to_buffer(packed, out);
            bytes.is_ok_and(|bytes| bytes == length)
        };
        let unpacked = DECOMPRESSOR.try_with(|decompressor| {
            let mut decompressor = decompressor.try_borrow_mut().ok()?;
            Some(unpack(decompressor.as_mut()?, out))
        });
        match unpacked {
            Ok(unpacked) => unpacked.unwrap_or(false),
            // It is gone while the thread ends.
            Err(_) => Decompressor::new().is_ok_and(|mut new| unpack(&mut new, out)),
        }
    }
}

#[cfg(not(feature = "zstd"))]
mod zstandard {
    pub fn pack(_: &[u8], _: &mut Vec<u8>) -> bool {
        false
    }

    pub fn unpack(_: &[u8], _: usize, _: &mut Vec<u8>) -> bool {
        false
    }
}
