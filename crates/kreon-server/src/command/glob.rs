//! Patterns as Redis matches them: `*`, `?`, `[a-z]`, `[^a]`, and `\` in front of any of these.

/// After so many steps a text counts as one that does not match: some tens of milliseconds, and more than any pattern takes that
/// was not made to take long. Who publishes a message must not hold up a thread for hours.
const STEPS_MAX: usize = 1 << 24;

/// Whether `text` as a whole matches `pattern`. Costs at most the product of the lengths, and [`STEPS_MAX`].
pub(crate) fn matches(pattern: &[u8], text: &[u8]) -> bool {
    let (mut pattern, mut text) = (pattern, text);
    let mut steps_left = STEPS_MAX;
    // Where to go on after the last `*` if the way taken fails: the pattern behind it, and the text that it was tried at. An earlier
    // `*` need not be tried again: what the last one can take covers it.
    let mut retry: Option<(&[u8], &[u8])> = None;
    loop {
        if let [b'*', rest @ ..] = pattern {
            if rest.is_empty() {
                return true;
            }
            pattern = rest;
            retry = Some((rest, text));
            continue;
        }
        let stepped = match (pattern, text) {
            ([], []) => return true,
            ([], _) | (_, []) => None,
            (_, [byte, after @ ..]) => {
                let (is_match, rest) = step(pattern, *byte);
                steps_left = steps_left.saturating_sub(pattern.len() - rest.len());
                is_match.then_some((rest, after))
            }
        };
        if steps_left == 0 {
            return false;
        }
        match (stepped, retry) {
            (Some(next), _) => (pattern, text) = next,
            (None, Some((after_star, [_, later @ ..]))) => {
                (pattern, text) = (after_star, later);
                retry = Some((after_star, later));
            }
            (None, _) => return false,
        }
    }
}

/// Whether one byte matches, and the rest of the pattern.
fn step(pattern: &[u8], byte: u8) -> (bool, &[u8]) {
    match pattern {
        [b'?', rest @ ..] => (true, rest),
        [b'[', rest @ ..] => class(rest, byte),
        [b'\\', literal, rest @ ..] | [literal, rest @ ..] => (*literal == byte, rest),
        [] => (false, pattern),
    }
}

/// Matches one byte with a class, behind its `[`. One without an end reaches to the end of the pattern, as with Redis.
fn class(pattern: &[u8], byte: u8) -> (bool, &[u8]) {
    let (is_negated, mut pattern) = match pattern {
        [b'^', rest @ ..] => (true, rest),
        _ => (false, pattern),
    };
    let mut is_found = false;
    loop {
        pattern = match pattern {
            [] => break,
            [b']', rest @ ..] => {
                pattern = rest;
                break;
            }
            [b'\\', literal, rest @ ..] => {
                is_found |= *literal == byte;
                rest
            }
            [from, b'-', to, rest @ ..] => {
                let (low, high) = (from.min(to), from.max(to));
                is_found |= (*low..=*high).contains(&byte);
                rest
            }
            [literal, rest @ ..] => {
                is_found |= *literal == byte;
                rest
            }
        };
    }
    (is_found != is_negated, pattern)
}

/// What every match of `pattern` begins with.
pub(super) fn literal_prefix(pattern: &[u8]) -> Vec<u8> {
    let mut prefix = Vec::new();
    let mut rest = pattern;
    loop {
        rest = match rest {
            [] | [b'*' | b'?' | b'[', ..] => return prefix,
            [b'\\', literal, rest @ ..] | [literal, rest @ ..] => {
                prefix.push(*literal);
                rest
            }
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_redis_does() {
        let yes = [
            ("*", ""),
            ("h?llo", "hello"),
            ("h*llo", "hllo"),
            ("h*llo", "heeeello"),
            ("h[ae]llo", "hallo"),
            ("h[^e]llo", "hallo"),
            ("h[a-b]llo", "hbllo"),
            ("h[b-a]llo", "hbllo"),
            ("*a*b*", "xaxbx"),
            ("a\\*b", "a*b"),
            ("", ""),
            ("*ab", "aab"),
            ("[a", "a"),
            ("a\\", "a\\"),
            ("[\\]]", "]"),
        ];
        for (pattern, text) in yes {
            assert!(
                matches(pattern.as_bytes(), text.as_bytes()),
                "{pattern} {text}"
            );
        }
        let no = [
            ("h?llo", "hllo"),
            ("h[^e]llo", "hello"),
            ("a*b", "abc"),
            ("", "a"),
            ("a", ""),
            ("a\\*b", "axb"),
            ("*a*b", "xbxa"),
            ("[^a]", ""),
            ("h*llo", "hell"),
        ];
        for (pattern, text) in no {
            assert!(
                !matches(pattern.as_bytes(), text.as_bytes()),
                "{pattern} {text}"
            );
        }
        let (pattern, text) = ("a*".repeat(50) + "b", "a".repeat(5000));
        assert!(
            !matches(pattern.as_bytes(), text.as_bytes()),
            "and that soon"
        );
        let (pattern, text) = (
            "*".to_owned() + &"a".repeat(1 << 20) + "b",
            "a".repeat(1 << 22),
        );
        assert!(!matches(pattern.as_bytes(), text.as_bytes()));
        let class = "*[".to_owned() + &"b".repeat(1 << 20) + "]c";
        assert!(!matches(class.as_bytes(), text.as_bytes()));
        assert!(matches(b"*b", (text + "b").as_bytes()), "long, but quick");
    }

    #[test]
    fn prefix_ends_at_the_first_wildcard() {
        for (pattern, prefix) in [
            ("user:*", "user:"),
            ("a\\*b?", "a*b"),
            ("*", ""),
            ("[a]", ""),
            ("all", "all"),
        ] {
            assert_eq!(
                literal_prefix(pattern.as_bytes()),
                prefix.as_bytes(),
                "{pattern}"
            );
        }
    }
}
