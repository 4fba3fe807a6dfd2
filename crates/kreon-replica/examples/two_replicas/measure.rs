//! What it cost.

/// CPU time of a process so far, user and system, in microseconds. The kernel counts in ticks, mostly of 10 ms.
pub fn cpu_us(pid: u32) -> std::io::Result<u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    // The name, in brackets, may hold anything.
    let fields = text.rsplit(')').next().unwrap_or_default();
    let mut fields = fields.split_ascii_whitespace().skip(11);
    let mut ticks = || fields.next().and_then(|field| field.parse::<u64>().ok());
    let total = ticks()
        .zip(ticks())
        .map_or(0, |(user, system)| user + system);
    Ok(total * 1_000_000 / ticks_per_second())
}

/// What the kernel shows to programs, whatever it counts in.
fn ticks_per_second() -> u64 {
    100
}

/// The value below which this part of them lies.
pub fn part(sorted: &[f64], part: f64) -> f64 {
    let last = sorted.len().saturating_sub(1) as f64;
    sorted.get((last * part) as usize).copied().unwrap_or(0.0)
}
