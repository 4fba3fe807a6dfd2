//! Patterns of channels.

/// Whether `text` matches a pattern of `*`, `?`, `[a-z]`, `[^x]` and `\x`, as Redis has them. Takes at most the product of
/// both lengths.
pub(crate) fn glob_matches(pattern: &[u8], text: &[u8]) -> bool {
    let (mut pattern, mut text) = (pattern, text);
    // Behind the last star: the pattern, and the text that it was tried on.
    let mut star: Option<(&[u8], &[u8])> = None;
    loop {
        let next = match (pattern, text) {
            ([b'*', behind @ ..], _) => {
                star = Some((behind, text));
                Some((behind, text))
            }
            ([], []) => return true,
            ([], _) | (_, []) => None,
            ([_, ..], [byte, rest @ ..]) => one(pattern, *byte).map(|behind| (behind, rest)),
        };
        (pattern, text) = match (next, &mut star) {
            (Some(next), _) => next,
            // The star takes one byte more.
            (None, Some((behind, tried))) => match tried {
                [_, rest @ ..] => {
                    *tried = rest;
                    (*behind, rest)
                }
                [] => return false,
            },
            (None, None) => return false,
        };
    }
}

/// What follows in the pattern, if its front matches `byte`.
fn one(pattern: &[u8], byte: u8) -> Option<&[u8]> {
    match pattern {
        [b'?', behind @ ..] => Some(behind),
        [b'[', set @ ..] => {
            let (is_in, behind) = class(set, byte);
            is_in.then_some(behind)
        }
        [b'\\', escaped, behind @ ..] => (*escaped == byte).then_some(behind),
        [plain, behind @ ..] => (*plain == byte).then_some(behind),
        [] => None,
    }
}

/// Whether `byte` is in a set, and what follows it. One that is not closed ends with the pattern.
fn class(set: &[u8], byte: u8) -> (bool, &[u8]) {
    let (is_negated, mut set) = match set {
        [b'^', rest @ ..] => (true, rest),
        set => (false, set),
    };
    let mut is_in = false;
    loop {
        set = match set {
            [] => return (is_in != is_negated, set),
            [b']', behind @ ..] => return (is_in != is_negated, behind),
            [b'\\', escaped, behind @ ..] => {
                is_in |= *escaped == byte;
                behind
            }
            [from, b'-', to, behind @ ..] => {
                is_in |= (*from.min(to)..=*from.max(to)).contains(&byte);
                behind
            }
            [plain, behind @ ..] => {
                is_in |= *plain == byte;
                behind
            }
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_those_of_redis() {
        for (pattern, text, is) in [
            ("*", "", true),
            ("h?llo", "hello", true),
            ("h?llo", "hllo", false),
            ("h*llo", "heeeello", true),
            ("h[ae]llo", "hallo", true),
            ("h[^e]llo", "hello", false),
            ("h[a-b]llo", "hbllo", true),
            ("h[b-a]llo", "hallo", true),
            ("\\*", "*", true),
            ("\\*", "x", false),
            ("a*b*c", "axxbyyc", true),
            ("a*b*c", "axxbyy", false),
            ("[", "x", false),
            ("", "", true),
            ("", "x", false),
            ("a\\", "a\\", true),
        ] {
            assert_eq!(
                glob_matches(pattern.as_bytes(), text.as_bytes()),
                is,
                "{pattern} {text}"
            );
        }
    }

    #[test]
    fn many_stars_take_no_exponential_time() {
        let pattern = "*a".repeat(50) + "b";
        assert!(!glob_matches(
            pattern.as_bytes(),
            "a".repeat(500).as_bytes()
        ));
    }
}
