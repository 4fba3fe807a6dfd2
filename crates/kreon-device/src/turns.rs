//! Length of a thread's time slice.

/// Asks the scheduler for short time slices of the calling thread. Its share of the processors stays the same, but a
/// thread that wakes up on the same processor need not wait for milliseconds. Without effect on kernels that do not
/// support it (before Linux 6.12).
pub fn take_short_turns() {
    #[cfg(all(target_os = "linux", target_pointer_width = "64", not(miri)))]
    linux::take_short_turns();
}

#[cfg(all(target_os = "linux", target_pointer_width = "64", not(miri)))]
mod linux {
    use std::ffi::c_long;

    /// The shortest slice that the scheduler accepts, in nanoseconds.
    pub(super) const TURN_NS: u64 = 100_000;

    #[cfg(target_arch = "x86_64")]
    const NUMBERS: Option<(c_long, c_long)> = Some((314, 315));
    #[cfg(any(target_arch = "aarch64", target_arch = "riscv64"))]
    const NUMBERS: Option<(c_long, c_long)> = Some((274, 275));
    #[cfg(not(any(
        target_arch = "x86_64",
        target_arch = "aarch64",
        target_arch = "riscv64"
    )))]
    const NUMBERS: Option<(c_long, c_long)> = None;

    /// `SCHED_OTHER`. Any other policy was set on purpose and is left alone.
    const NORMAL: u32 = 0;

    /// `struct sched_attr` of the kernel, first version.
    #[repr(C)]
    #[derive(Default)]
    struct Attributes {
        size_bytes: u32,
        policy: u32,
        flags: u64,
        nice: i32,
        priority: u32,
        runtime_ns: u64,
        deadline_ns: u64,
        period_ns: u64,
    }

    unsafe extern "C" {
        fn syscall(number: c_long, ...) -> c_long;
    }

    pub fn take_short_turns() {
        let Some((set, get)) = NUMBERS else { return };
        let mut attributes = Attributes::default();
        let size_bytes = size_of::<Attributes>() as c_long;
        let own: c_long = 0;
        let flags: c_long = 0;
        // SAFETY: `sched_getattr` writes at most `size_bytes` bytes, the size of `attributes`, all of whose bit patterns
        // are valid; it keeps no pointer.
        let outcome = unsafe { syscall(get, own, &raw mut attributes, size_bytes, flags) };
        if outcome != 0 || attributes.policy != NORMAL {
            return;
        }
        attributes.runtime_ns = TURN_NS;
        // SAFETY: `sched_setattr` reads `attributes`, whose first member is its size; it keeps no pointer. The call
        // changes how the calling thread is scheduled and nothing else.
        let _ = unsafe { syscall(set, own, &raw const attributes, flags) };
    }
}

#[cfg(all(test, target_os = "linux", target_pointer_width = "64", not(miri)))]
mod tests {
    /// Time slice of the calling thread in nanoseconds, if the kernel reports it.
    fn turn_ns() -> Option<u64> {
        let text = std::fs::read_to_string("/proc/thread-self/sched").ok()?;
        let line = text.lines().find(|line| line.starts_with("se.slice"))?;
        line.rsplit(' ').next()?.parse().ok()
    }

    /// Whether the kernel lets a thread choose its slice: since Linux 6.12.
    fn takes_turns() -> Option<bool> {
        let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").ok()?;
        let mut numbers = release.split(['.', '-']).map(str::parse::<u32>);
        let (major, minor) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
        Some((major, minor) >= (6, 12))
    }

    #[test]
    fn a_thread_gets_the_turns_it_asked_for_where_the_kernel_knows_them() {
        std::thread::spawn(|| {
            let (Some(true), Some(before)) = (takes_turns(), turn_ns()) else {
                eprintln!("skipped: the kernel knows no turns, or does not tell");
                return;
            };
            assert_ne!(before, super::linux::TURN_NS);
            super::take_short_turns();
            assert_eq!(turn_ns(), Some(super::linux::TURN_NS));
        })
        .join()
        .unwrap();
    }
}
