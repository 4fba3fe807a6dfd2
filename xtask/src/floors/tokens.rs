//! Rust source cut into tokens, as far as paths and function bodies need it: comments and literals
//! are gone, so nothing in them is taken for code.

/// A token and the line it stands on, counted from 1.
#[derive(Debug, PartialEq)]
pub struct Token {
    pub line: usize,
    pub what: What,
}

#[derive(Debug, PartialEq)]
pub enum What {
    /// An identifier, keyword or number.
    Word(String),
    /// `::`
    PathSeparator,
    /// Any other character that is not white space.
    Mark(char),
}

impl Token {
    pub fn is_word(&self, word: &str) -> bool {
        matches!(&self.what, What::Word(w) if w == word)
    }

    pub fn word(&self) -> Option<&str> {
        match &self.what {
            What::Word(word) => Some(word),
            _ => None,
        }
    }

    pub fn is_mark(&self, mark: char) -> bool {
        self.what == What::Mark(mark)
    }
}

/// Cuts `source`, which the compiler is assumed to accept; other text gives some tokens or other.
pub fn tokens(source: &str) -> Vec<Token> {
    let mut cutter = Cutter {
        chars: source.chars().collect(),
        at: 0,
        line: 1,
    };
    let mut tokens = Vec::new();
    while cutter.peek(0).is_some() {
        let line = cutter.line;
        if let Some(what) = cutter.next() {
            tokens.push(Token { line, what });
        }
    }
    tokens
}

struct Cutter {
    chars: Vec<char>,
    at: usize,
    line: usize,
}

impl Cutter {
    fn peek(&self, ahead: usize) -> Option<char> {
        self.chars.get(self.at + ahead).copied()
    }

    fn skip(&mut self) -> Option<char> {
        let skipped = self.peek(0)?;
        self.at += 1;
        self.line += usize::from(skipped == '\n');
        Some(skipped)
    }

    /// The token at this place, `None` if what stands here is not one.
    fn next(&mut self) -> Option<What> {
        match (self.peek(0)?, self.peek(1)) {
            ('/', Some('/')) => self.skip_until_newline(),
            ('/', Some('*')) => self.skip_block_comment(),
            ('"', _) => self.skip_quoted('"'),
            ('\'', _) => self.skip_char_or_lifetime(),
            (':', Some(':')) => {
                self.at += 2;
                return Some(What::PathSeparator);
            }
            (c, _) if is_word_char(c) => return self.word(),
            (c, _) => {
                self.skip();
                return (!c.is_whitespace()).then_some(What::Mark(c));
            }
        }
        None
    }

    fn word(&mut self) -> Option<What> {
        let word = self.bare_word();
        if !matches!(word.as_str(), "r" | "br" | "cr") {
            return Some(What::Word(word));
        }
        let hashes = self.chars[self.at..]
            .iter()
            .take_while(|c| **c == '#')
            .count();
        if self.peek(hashes) == Some('"') {
            self.skip_raw_string(hashes);
            return None;
        }
        if hashes == 1 {
            self.skip();
            return Some(What::Word(self.bare_word()));
        }
        Some(What::Word(word))
    }

    fn bare_word(&mut self) -> String {
        let mut word = String::new();
        while let Some(c) = self.peek(0).filter(|c| is_word_char(*c)) {
            word.push(c);
            self.at += 1;
        }
        word
    }

    fn skip_until_newline(&mut self) {
        while self.peek(0).is_some_and(|c| c != '\n') {
            self.at += 1;
        }
    }

    fn skip_block_comment(&mut self) {
        let mut depth = 0;
        while let Some(c) = self.skip() {
            match (c, self.peek(0)) {
                ('/', Some('*')) => depth += 1,
                ('*', Some('/')) => depth -= 1,
                _ => continue,
            }
            self.skip();
            if depth == 0 {
                return;
            }
        }
    }

    fn skip_quoted(&mut self, quote: char) {
        self.skip();
        while let Some(c) = self.skip() {
            if c == '\\' {
                self.skip();
            } else if c == quote {
                return;
            }
        }
    }

    fn skip_raw_string(&mut self, hashes: usize) {
        self.at += hashes + 1;
        while let Some(c) = self.skip() {
            if c == '"' && (0..hashes).all(|ahead| self.peek(ahead) == Some('#')) {
                self.at += hashes;
                return;
            }
        }
    }

    fn skip_char_or_lifetime(&mut self) {
        if self.peek(1) == Some('\\') || self.peek(2) == Some('\'') {
            self.skip_quoted('\'');
        } else {
            self.skip();
            self.bare_word();
        }
    }
}

fn is_word_char(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(source: &str) -> Vec<String> {
        let tokens = tokens(source);
        let words = tokens.iter().filter_map(|t| t.word());
        words.map(str::to_owned).collect()
    }

    #[test]
    fn comments_hold_no_code() {
        assert_eq!(
            words("a // b\n/* c /* d */ e */ f /// g\nh"),
            ["a", "f", "h"]
        );
    }

    #[test]
    fn literals_hold_no_code() {
        assert_eq!(words(r#"a "b \" c" d '"' e '\'' f"#), ["a", "d", "e", "f"]);
        assert_eq!(
            words("a r#\"b \" c\"# d r\"\\\" e br##\"x\"# y\"## f"),
            ["a", "d", "e", "f"]
        );
    }

    #[test]
    fn lifetimes_do_not_open_a_literal() {
        assert_eq!(
            words("fn f<'a>(x: &'static str) -> &'a u8"),
            ["fn", "f", "x", "str", "u8"]
        );
    }

    #[test]
    fn raw_identifiers_are_words() {
        assert_eq!(words("r#fn r"), ["fn", "r"]);
    }

    #[test]
    fn lines_are_counted_through_literals() {
        let tokens = tokens("a\n\"b\nc\"\n/* \n */ d::e");
        assert_eq!(tokens[1].line, 5);
        assert_eq!(tokens[2].what, What::PathSeparator);
    }
}
