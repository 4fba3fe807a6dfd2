//! Brackets that belong together in a list of tokens.

use crate::floors::tokens::{Token, What};

/// The place of the bracket that closes the one at `open`; the end of `tokens` if none does.
pub fn closing(tokens: &[Token], open: usize) -> usize {
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate().skip(open) {
        match token.what {
            What::Mark('(' | '[' | '{') => depth += 1,
            What::Mark(')' | ']' | '}') => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return at;
                }
            }
            _ => {}
        }
    }
    tokens.len()
}

/// The place of the bracket that opens the one at `close`.
pub fn opening(tokens: &[Token], close: usize) -> Option<usize> {
    let mut depth = 0_usize;
    for at in (0..=close).rev() {
        match tokens[at].what {
            What::Mark(')' | ']' | '}') => depth += 1,
            What::Mark('(' | '[' | '{') => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return Some(at);
                }
            }
            _ => {}
        }
    }
    None
}

/// The place behind the `>` that closes the `<` at `open`. The `>` of an arrow closes nothing.
pub fn behind_angles(tokens: &[Token], open: usize) -> usize {
    let mut depth = 0_usize;
    let mut at = open;
    while let Some(token) = tokens.get(at) {
        match token.what {
            What::Mark('<') => depth += 1,
            What::Mark('>') if at > 0 && !tokens[at - 1].is_mark('-') => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return at + 1;
                }
            }
            What::Mark('(' | '[' | '{') => at = closing(tokens, at),
            What::Mark(';') => return at,
            _ => {}
        }
        at += 1;
    }
    at
}

/// Cuts `tokens` at the commas that stand in no bracket.
pub fn split_at_commas(tokens: &[Token]) -> Vec<&[Token]> {
    let mut parts = Vec::new();
    let (mut start, mut at) = (0, 0);
    while let Some(token) = tokens.get(at) {
        match token.what {
            What::Mark('(' | '[' | '{') => at = closing(tokens, at),
            What::Mark('<') => {
                at = behind_angles(tokens, at);
                continue;
            }
            What::Mark(',') => {
                parts.push(&tokens[start..at]);
                start = at + 1;
            }
            _ => {}
        }
        at += 1;
    }
    if start < tokens.len() {
        parts.push(&tokens[start..]);
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::floors::tokens::tokens;

    #[test]
    fn brackets_find_each_other() {
        let source = tokens("f(a, [b]) { }");
        assert_eq!(closing(&source, 1), 7);
        assert_eq!(opening(&source, 7), Some(1));
    }

    #[test]
    fn an_arrow_closes_no_angle() {
        let source = tokens("<F: Fn(u8) -> u8> F");
        assert!(source[behind_angles(&source, 0)].is_word("F"));
    }

    #[test]
    fn commas_in_brackets_do_not_cut() {
        assert_eq!(
            split_at_commas(&tokens("a: (b, c), d: HashMap<e, f>, g")).len(),
            3
        );
    }
}
