//! Settings of the stores that the hunts open.

use std::sync::OnceLock;
use std::time::Duration;

use kreon_device::Backing;
use kreon_engine::{Background, Options};
use kreon_sim::Dice;

/// Least memory of every store of this process, in bytes.
static MEMORY_BYTES_MIN: OnceLock<usize> = OnceLock::new();

/// Gives every store of this process at least `memory_bytes`, whatever its hunt chooses. With gigabytes, segments of
/// the log are used again while buffers of earlier uses are in memory, and no page leaves it. The first call counts.
pub fn set_memory_bytes_min(memory_bytes: usize) {
    let _ = MEMORY_BYTES_MIN.set(memory_bytes);
}

/// `options` with the memory that [`set_memory_bytes_min`] asks for, which no opening touches in advance.
pub fn with_memory_min(options: Options) -> Options {
    match MEMORY_BYTES_MIN.get() {
        Some(&memory_bytes) if options.memory_bytes < memory_bytes => Options {
            memory_bytes,
            backing: Backing::Sparse,
            ..options
        },
        _ => options,
    }
}

/// Settings under which every course is the same each time, and spills come often.
pub fn options() -> Options {
    Options {
        memory_bytes: kreon_engine::MEMORY_BYTES_MIN,
        // Hunts open a store many times, and use little of its memory. Checks do it as users do.
        backing: Backing::Sparse,
        l0_bytes: Some(L0_BYTES),
        // A level holds one leaf, two, four...
        growth_factor: Some(2),
        unspilled_bytes_min: 1 << 20,
        volume_bytes_max: 256 << 20,
        background: Background::Inline,
        scatter_pages: true,
        // Not so the checks, so that regions also go from one place to the other.
        regions_in_stream_max: 0,
        store_id: Some(0x6b72_656f_6e5f_7369),
        ..with_idle_time(Options::default())
    }
}

/// `options` with which values are laid together however few there are, as soon as nobody writes.
pub fn with_idle_time(options: Options) -> Options {
    Options {
        idle_after: Duration::from_millis(1),
        idle_written_max: 100.0,
        idle_bytes_min: Some(0),
        ..options
    }
}

/// As [`options`], but without spills that nobody asks for, and with few frames. Opened as users' stores are, with a
/// thread that reads the log ahead.
pub fn options_of_check() -> Options {
    Options {
        backing: Backing::Ahead,
        l0_bytes: Some(1600 << 10),
        regions_in_stream_max: 2,
        ..options()
    }
}

/// As [`options`]; for some seeds with so much memory, or so many buffers of the log in it, that segments are used again
/// while earlier uses of them are in memory; for some with log that is kept for a change feed.
pub fn options_with_memory(seed: u64) -> Options {
    let (memory_bytes, log_buffer_bytes) = match Dice::new(seed ^ 0x006d_656d).below(64) {
        0 => (512 << 20, None),
        1..16 => (44 << 20, Some(32 << 20)),
        _ => (kreon_engine::MEMORY_BYTES_MIN, None),
    };
    let is_followed = Dice::new(seed ^ 0x6665_6564).below(4) == 0;
    let changes_kept_bytes = if is_followed { KEPT_BYTES } else { 0 };
    Options {
        memory_bytes,
        log_buffer_bytes,
        changes_kept_bytes,
        ..options()
    }
}

const L0_BYTES: usize = 4 << 10;

/// Log that is kept for a change feed where there is one: a few segments.
pub const KEPT_BYTES: u64 = 5 << 20;
