//! The choice of victims: the segments with the most dead bytes first, which cost the least copies for the space that they
//! give back.

use crate::space::Victim;

/// What counts as a victim.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// A segment has at least this share of dead bytes.
    pub dead_share_min: f64,
    /// So many at the most.
    pub count_max: usize,
}

/// The best of `all` first, as far as the rules allow.
pub fn choose(mut all: Vec<Victim>, rules: &Rules) -> Vec<Victim> {
    all.retain(|victim| victim.dead_share() >= rules.dead_share_min);
    all.sort_by_key(|victim| victim.live_bytes);
    all.truncate(rules.count_max);
    all
}

#[cfg(test)]
mod tests {
    use kreon_base::SegmentId;
    use kreon_format::LOG_PAYLOAD_BYTES;

    use super::*;

    fn chosen(live_shares: &[f64]) -> Vec<u32> {
        let victim = |(segment, live_share): (u32, &f64)| Victim {
            segment: SegmentId(segment),
            sequence: u64::from(segment),
            live_bytes: (live_share * f64::from(LOG_PAYLOAD_BYTES)) as u32,
        };
        let rules = Rules {
            dead_share_min: 0.1,
            count_max: 2,
        };
        let chosen = choose((1..).zip(live_shares).map(victim).collect(), &rules);
        chosen.iter().map(|victim| victim.segment.0).collect()
    }

    #[test]
    fn the_emptiest_come_first_and_no_more_than_fit_into_a_round() {
        assert_eq!(chosen(&[0.8, 0.2, 0.5]), [2, 3]);
    }

    #[test]
    fn nothing_is_moved_for_little() {
        assert!(chosen(&[0.95, 1.0]).is_empty());
    }
}
