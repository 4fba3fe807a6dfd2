//! How many changes of one thread a store has kept.

/// How many changes a store has kept whose keys had `held` before: `found` is the state after the first of them, `least` to
/// `most`. `change` tells the key and the value of a change by its number, from 1 on.
pub(crate) fn changes_kept<T: Clone + PartialEq>(
    found: &[Option<T>],
    held: &[Option<T>],
    (least, most): (u64, u64),
    change: impl Fn(u64) -> (usize, Option<T>),
) -> Result<u64, usize> {
    let mut held = held.to_vec();
    let differs = |held: &[Option<T>], key: usize| held.get(key) != found.get(key);
    let mut different = (0..held.len()).filter(|&key| differs(&held, key)).count();
    for number in 0..=most {
        if number > 0 {
            let (key, value) = change(number);
            let before = differs(&held, key);
            held[key] = value;
            different += usize::from(differs(&held, key));
            different -= usize::from(before);
        }
        if number >= least && different == 0 {
            return Ok(number);
        }
    }
    Err(different)
}

#[cfg(test)]
mod tests {
    use super::changes_kept;

    #[test]
    fn a_state_is_found_by_the_first_changes_that_make_it_and_by_no_others() {
        let change = |number: u64| ((number % 2) as usize, (number < 4).then_some(number));
        let kept = |found: [Option<u64>; 2], least| {
            changes_kept(&found, &[None, None], (least, 5), change)
        };
        assert_eq!(kept([None, None], 0), Ok(0));
        assert_eq!(kept([Some(2), Some(3)], 0), Ok(3));
        assert_eq!(kept([None, None], 1), Ok(5));
        assert_eq!(kept([Some(2), None], 0), Err(1));
        assert_eq!(kept([None, Some(1)], 2), Err(1));
    }
}
