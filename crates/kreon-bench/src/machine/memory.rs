//! Memory of this process.

use std::fs;

use super::usage::field;

/// Starts anew to look for the peak.
pub fn reset_peak() {
    // Refused in some sandboxes: then the peak is that since the process began.
    let _ = fs::write("/proc/self/clear_refs", "5");
}

/// The most memory that was resident at once since the last reset, in bytes.
pub fn peak_rss_bytes() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    field(&status, "VmHWM:") << 10
}

/// What a process may take whose store has this budget: a twentieth and 32 MiB more.
pub fn allowed_bytes(budget_bytes: u64) -> u64 {
    budget_bytes + budget_bytes / 20 + (32 << 20)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_twentieth_and_a_bit_are_allowed_beyond_the_budget() {
        assert_eq!(allowed_bytes(200 << 20), (242 << 20));
    }

    #[test]
    fn the_peak_is_seen() {
        let before = peak_rss_bytes();
        let block = vec![1u8; 64 << 20];
        std::hint::black_box(&block);
        assert!(peak_rss_bytes() >= before.max(60 << 20));
    }
}
