//! What the process takes.

use std::fs;

/// Memory and time of the process, as the system tells them; zero where it does not.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Process {
    pub resident_bytes: u64,
    /// Time of the processor in its code.
    pub user_s: f64,
    /// Time of the processor in the kernel.
    pub system_s: f64,
}

impl Process {
    /// At this moment.
    pub(crate) fn now() -> Self {
        let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
        Self::of(
            &stat,
            rustix::param::page_size() as u64,
            rustix::param::clock_ticks_per_second(),
        )
    }

    /// From the text of `/proc/self/stat`: the name in brackets may hold blanks.
    fn of(stat: &str, page_bytes: u64, ticks_per_s: u64) -> Self {
        let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
        let field = |place: usize| -> u64 {
            let field = fields.split_ascii_whitespace().nth(place);
            field.and_then(|field| field.parse().ok()).unwrap_or(0)
        };
        let seconds = |ticks: u64| ticks as f64 / ticks_per_s.max(1) as f64;
        // Fields 14, 15 and 24, the first behind the name being the third.
        Self {
            resident_bytes: field(21) * page_bytes,
            user_s: seconds(field(11)),
            system_s: seconds(field(12)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_counted_behind_the_name() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4194560 91 0 0 0 250 50 0 0 20 0 1 0 100 1000 25 184";
        let process = Process::of(stat, 4096, 100);
        assert_eq!(process.resident_bytes, 25 * 4096);
        assert_eq!((process.user_s, process.system_s), (2.5, 0.5));
        assert_eq!(Process::of("", 4096, 100), Process::default());
    }
}
