//! The wall clock, read at each snapshot: on Linux its coarse form, which reads memory and no counter of the processor, and
//! is behind by a tick of the kernel, 1 to 10 ms; by more where the machine itself was stopped.

/// Milliseconds since 1970; 0 before.
#[cfg(all(target_os = "linux", not(feature = "portable")))]
pub fn wall_clock_ms() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::RealtimeCoarse);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let ms = u64::try_from(time.tv_nsec / 1_000_000).unwrap_or(0);
    seconds.saturating_mul(1000).saturating_add(ms)
}

/// Milliseconds since 1970; 0 before.
#[cfg(not(all(target_os = "linux", not(feature = "portable"))))]
pub fn wall_clock_ms() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| since.as_millis() as u64)
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime, UNIX_EPOCH};

    #[test]
    fn the_coarse_clock_is_a_little_behind_and_never_ahead() {
        let now = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let before = now();
        let coarse = Duration::from_millis(super::wall_clock_ms());
        let after = now();
        assert!(
            coarse + Duration::from_secs(5) > before,
            "{coarse:?} {before:?}"
        );
        assert!(coarse <= after, "{coarse:?} {after:?}");
    }
}
