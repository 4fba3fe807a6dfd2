//! The clock of the feature `lock-times`.

/// The time-stamp counter, which runs at one rate on all cores of a processor that has `constant_tsc`.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline]
pub(crate) fn ticks() -> u64 {
    // SAFETY: the instruction is part of every processor of this kind, and reads a register. A system that forbids it to
    // programs ends the process, which breaks no rule of the language.
    unsafe { std::arch::x86_64::_rdtsc() }
}

/// Nanoseconds since the first call.
#[cfg(not(all(target_arch = "x86_64", not(miri))))]
pub(crate) fn ticks() -> u64 {
    use std::sync::LazyLock;
    use std::time::Instant;
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    START.elapsed().as_nanos() as u64
}
