//! The choice of victims.
//!
//! By cost and benefit, as in log-structured file systems: the space that a segment gives back, over what it costs to
//! read it and to write its live records elsewhere, weighted by its age. Old segments lose little by waiting longer, so
//! what is dead in them stays worth as much; young ones will have more dead bytes soon, for nothing.

use crate::space::Victim;

/// What counts as a victim.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// A segment has at least this share of dead bytes.
    pub dead_share_min: f64,
    /// The emptiest first, whatever their age: space is needed now.
    pub is_urgent: bool,
    /// So many at the most.
    pub count_max: usize,
    /// The live bytes of all of them together.
    pub live_bytes_max: u64,
}

fn worth(victim: &Victim, is_urgent: bool) -> f64 {
    let dead = victim.dead_share();
    let live = 1.0 - dead;
    match is_urgent {
        true => dead,
        false => dead / (1.0 + live) * (1.0 + victim.age as f64).sqrt(),
    }
}

/// The best of `all` first, as far as the rules allow.
pub fn choose(mut all: Vec<Victim>, rules: &Rules) -> Vec<Victim> {
    all.retain(|victim| victim.dead_share() >= rules.dead_share_min);
    all.sort_by(|a, b| worth(b, rules.is_urgent).total_cmp(&worth(a, rules.is_urgent)));
    let mut left = rules.live_bytes_max;
    let fits = |victim: &Victim| {
        let fits = u64::from(victim.live_bytes) <= left;
        left = left.saturating_sub(u64::from(victim.live_bytes));
        fits
    };
    let mut chosen: Vec<_> = all.into_iter().take(rules.count_max).collect();
    let count = chosen.iter().copied().take_while(fits).count();
    chosen.truncate(count);
    debug_assert!({
        let live = chosen.iter().map(|victim| u64::from(victim.live_bytes));
        live.sum::<u64>() <= rules.live_bytes_max
    });
    chosen
}

#[cfg(test)]
mod tests {
    use kreon_base::SegmentId;
    use kreon_format::LOG_PAYLOAD_BYTES;

    use super::*;

    const RULES: Rules = Rules {
        dead_share_min: 0.1,
        is_urgent: false,
        count_max: 2,
        live_bytes_max: u64::MAX,
    };

    fn victim(segment: u32, live_share: f64, age: u64) -> Victim {
        Victim {
            segment: SegmentId(segment),
            sequence: u64::from(segment),
            live_bytes: (live_share * f64::from(LOG_PAYLOAD_BYTES)) as u32,
            age,
        }
    }

    fn chosen(all: &[Victim], rules: Rules) -> Vec<u32> {
        let chosen = choose(all.to_vec(), &rules);
        chosen.iter().map(|victim| victim.segment.0).collect()
    }

    #[test]
    fn of_equal_age_the_emptiest_comes_first() {
        let all = [victim(1, 0.8, 9), victim(2, 0.2, 9), victim(3, 0.5, 9)];
        assert_eq!(chosen(&all, RULES), [2, 3]);
    }

    #[test]
    fn an_old_segment_may_be_worth_more_than_an_emptier_young_one() {
        let all = [victim(1, 0.5, 1), victim(2, 0.6, 100)];
        assert_eq!(chosen(&all, RULES), [2, 1]);
        let urgent = Rules {
            is_urgent: true,
            ..RULES
        };
        assert_eq!(chosen(&all, urgent), [1, 2]);
    }

    #[test]
    fn nothing_is_moved_for_little_and_no_more_than_there_is_room_for() {
        assert!(chosen(&[victim(1, 0.95, 100)], RULES).is_empty());
        let tight = Rules {
            live_bytes_max: u64::from(LOG_PAYLOAD_BYTES),
            ..RULES
        };
        let all = [victim(1, 0.6, 9), victim(2, 0.6, 9)];
        assert_eq!(chosen(&all, tight), [1]);
    }
}
