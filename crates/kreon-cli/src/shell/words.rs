//! Cutting a line into words, with quotes as in a shell.

/// The words of `line`. Blanks divide; `'..'` and `".."` keep them; a backslash before a blank, a quote
/// or a backslash takes its meaning away (not within `'..'`) and stands for itself elsewhere, so that
/// `\xNN` comes through.
pub fn split_words(line: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    // Some also for an empty word (`""`).
    let mut word: Option<String> = None;
    let mut quote: Option<char> = None;
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        match (quote, c) {
            (Some(open), _) if c == open => quote = None,
            (None, '"' | '\'') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, _) if c.is_whitespace() => words.extend(word.take()),
            (None | Some('"'), '\\') => {
                let escaped = chars.next_if(|&next| takes_escape(next, quote));
                word.get_or_insert_default().push(escaped.unwrap_or(c));
            }
            _ => word.get_or_insert_default().push(c),
        }
    }
    if let Some(open) = quote {
        return Err(format!("the quote {open} is not closed"));
    }
    words.extend(word);
    Ok(words)
}

fn takes_escape(c: char, quote: Option<char>) -> bool {
    match quote {
        Some(open) => c == open || c == '\\',
        None => c.is_whitespace() || matches!(c, '"' | '\'' | '\\'),
    }
}

#[cfg(test)]
mod tests {
    use super::split_words;

    #[test]
    fn words_are_cut_at_blanks_outside_quotes() {
        for (line, words) in [
            ("", &[][..]),
            ("  \t ", &[]),
            (" put  k v ", &["put", "k", "v"]),
            ("put 'a b' \"c  d\"", &["put", "a b", "c  d"]),
            ("a''b '' \"\"", &["ab", "", ""]),
            (r"put a\ b \'x\'", &["put", "a b", "'x'"]),
            (r#""say \"hi\"" "a\\b""#, &["say \"hi\"", "a\\b"]),
            (r#"'{"a": "b\n"}'"#, &[r#"{"a": "b\n"}"#]),
            (
                r#"\x00 "\xff" '\x41' \"#,
                &[r"\x00", r"\xff", r"\x41", "\\"],
            ),
            ("größe 東京", &["größe", "東京"]),
        ] {
            assert_eq!(split_words(line).unwrap(), words, "{line}");
        }
    }

    #[test]
    fn a_quote_that_is_not_closed_is_refused() {
        for line in ["'", "put \"a", r#"put "a\""#] {
            assert!(split_words(line).is_err(), "{line}");
        }
    }
}
