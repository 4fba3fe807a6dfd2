//! What cleaning a log must write, by analysis: a line to hold measurements against.
//!
//! Records of one size are overwritten uniformly in a log of segments that hold many records each; space is `a` times
//! the live bytes. A segment is cleaned when its turn comes, a share `u` of its records still lives and is written
//! again, so a segment makes room for `1 - u` segments of new records. Between being written and being cleaned, `T`
//! segments' worth of space sees `T (1 - u)` of new records, each of which kills one of the `T / a` live ones with equal
//! chance; a record outlives them with the chance `exp(-a (1 - u))`, hence
//!
//! `u = exp(-a (1 - u))`, and the log writes `1 / (1 - u)` bytes for each byte given.
//!
//! (J. Menon, "A performance comparison of RAID-5 and log-structured arrays", HPDC 1995; J. T. Robinson, "Analysis of
//! steady-state segment storage utilizations in a log-structured file system with least-utilized segment cleaning",
//! OSR 30(4), 1996; P. Desnoyers, "Analytic modeling of SSD write performance", SYSTOR 2012.) It is exact for cleaning
//! in the order of age. Greedy cleaning, which takes the segment with the fewest live bytes, comes to the same the more
//! records a segment holds: all segments of an age then look alike.

/// Bytes that a log writes for each byte given, when its space is `space_amplification` times the live bytes and
/// overwrites are uniform. `None` at 1 and below: without any room no segment can be cleaned.
pub fn written_per_byte(space_amplification: f64) -> Option<f64> {
    let a = space_amplification;
    if a.is_nan() || a <= 1.0 {
        return None;
    }
    // The share that is dead, `x = 1 - u`, solves `1 - x = exp(-a x)`. Beside 0 there is one root in (0, 1], because
    // `1 - exp(-a x) - x` rises from 0 for a > 1 and is concave; halving finds it from any sign change.
    let excess = |x: f64| 1.0 - (-a * x).exp() - x;
    // The excess is above 0 up to its top, at `ln(a) / a`.
    let (mut low, mut high) = (a.ln() / a, 1.0);
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        match excess(middle) > 0.0 {
            true => low = middle,
            false => high = middle,
        }
    }
    Some(2.0 / (low + high))
}

/// Simulated greedy cleaning of uniform overwrites, segments of 2 MiB with records of 1030 bytes: space amplification,
/// and log bytes written for each byte given.
pub const SIMULATED_GREEDY: [(f64, f64); 5] = [
    (1.1, 5.9),
    (1.2, 3.25),
    (1.3, 2.39),
    (1.5, 1.73),
    (2.0, 1.26),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn analysis_and_simulation_of_greedy_cleaning_agree() {
        for (space, simulated) in SIMULATED_GREEDY {
            let analytic = written_per_byte(space).unwrap();
            let off = simulated / analytic - 1.0;
            assert!(
                (-0.005..0.05).contains(&off),
                "{space}: {analytic:.3} by analysis, {simulated} simulated"
            );
        }
    }

    #[test]
    fn the_root_solves_the_equation() {
        for percent in [101, 105, 130, 200, 1000] {
            let a = f64::from(percent) / 100.0;
            let dead = 1.0 / written_per_byte(a).unwrap();
            assert!((1.0 - dead - (-a * dead).exp()).abs() < 1e-9, "{a}");
            assert!(dead > 0.0 && dead <= 1.0);
        }
    }

    #[test]
    fn without_room_nothing_can_be_cleaned() {
        assert_eq!(written_per_byte(1.0), None);
        assert_eq!(written_per_byte(0.5), None);
        assert!(written_per_byte(1.001).unwrap() > 100.0);
    }
}
