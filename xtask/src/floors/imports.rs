//! Which modules of its own crate a source file names.

use super::tokens::{Token, What, tokens};

/// A path that starts at `crate` or climbs by `super` to the crate root.
#[derive(Debug, PartialEq)]
pub struct Import {
    pub line: usize,
    /// What stands directly below the crate root: a module, or an item of the root; `*` for all.
    pub top: String,
}

/// The imports in `source`, the text of the module at `path` (`["tree", "search"]`; empty: the root).
pub fn imports(source: &str, path: &[String]) -> Vec<Import> {
    let mut finder = Finder {
        tokens: tokens(source),
        path: path.to_vec(),
        outside: Vec::new(),
        found: Vec::new(),
    };
    finder.run();
    finder.found
}

struct Finder {
    tokens: Vec<Token>,
    /// The module that the present token stands in.
    path: Vec<String>,
    /// For each open brace: how many parts the path had before it.
    outside: Vec<usize>,
    found: Vec<Import>,
}

impl Finder {
    fn run(&mut self) {
        let mut at = 0;
        while let Some(token) = self.tokens.get(at) {
            match &token.what {
                What::Mark('{') => {
                    let name = self.inline_module_before(at).map(str::to_owned);
                    self.outside.push(self.path.len());
                    self.path.extend(name);
                }
                What::Mark('}') => {
                    let outside = self.outside.pop().unwrap_or(self.path.len());
                    self.path.truncate(outside);
                }
                What::Word(word) if word == "crate" || word == "super" => {
                    let base = match word.as_str() {
                        "crate" => Some(0),
                        _ => self.path.len().checked_sub(1),
                    };
                    if let Some(base) = base {
                        at = self.follow(at + 1, base);
                        continue;
                    }
                }
                _ => {}
            }
            at += 1;
        }
    }

    /// The name in `mod name {` if the brace at `brace` ends that.
    fn inline_module_before(&self, brace: usize) -> Option<&str> {
        let keyword = self.tokens.get(brace.checked_sub(2)?)?;
        keyword.is_word("mod").then_some(())?;
        self.tokens.get(brace - 1)?.word()
    }

    /// Reads what follows a path that has come to the module `base` steps below the root. Returns
    /// the place behind it. A braced group is walked by branches, each from the same base.
    fn follow(&mut self, at: usize, base: usize) -> usize {
        if self.tokens.get(at).map(|t| &t.what) != Some(&What::PathSeparator) {
            return at;
        }
        self.branch(at + 1, base)
    }

    fn branch(&mut self, at: usize, base: usize) -> usize {
        let Some(token) = self.tokens.get(at) else {
            return at;
        };
        let line = token.line;
        match &token.what {
            What::Word(word) if word == "super" => match base.checked_sub(1) {
                Some(base) => self.follow(at + 1, base),
                None => at + 1,
            },
            What::Mark('{') => self.group(at + 1, base),
            What::Word(word) if base == 0 => {
                let top = word.clone();
                self.found.push(Import { line, top });
                at + 1
            }
            What::Mark('*') if base == 0 => {
                let top = "*".to_owned();
                self.found.push(Import { line, top });
                at + 1
            }
            _ => at + 1,
        }
    }

    /// Walks the branches of a group that opened just before `at`, as far as its closing brace.
    fn group(&mut self, mut at: usize, base: usize) -> usize {
        loop {
            at = self.branch(at, base);
            let mut depth = 0;
            loop {
                match self.tokens.get(at).map(|t| &t.what) {
                    None => return at,
                    Some(What::Mark('{')) => depth += 1,
                    Some(What::Mark('}')) if depth == 0 => return at + 1,
                    Some(What::Mark('}')) => depth -= 1,
                    Some(What::Mark(',')) if depth == 0 => break,
                    _ => {}
                }
                at += 1;
            }
            at += 1;
            if self.tokens.get(at).is_some_and(|t| t.is_mark('}')) {
                return at + 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tops(source: &str, path: &[&str]) -> Vec<String> {
        let path: Vec<_> = path.iter().map(|s| (*s).to_owned()).collect();
        imports(source, &path).into_iter().map(|i| i.top).collect()
    }

    #[test]
    fn paths_from_the_root_are_found_anywhere() {
        let source = "use crate::log::Tail; fn f() -> crate::tree::Leaf { crate::gc::go() }";
        assert_eq!(tops(source, &["volume"]), ["log", "tree", "gc"]);
    }

    #[test]
    fn groups_are_walked_by_branch() {
        let source =
            "use crate::{log::{Tail, Head}, tree::{self, x::{y, z}}, gc,};\nuse crate::level;";
        assert_eq!(tops(source, &["volume"]), ["log", "tree", "gc", "level"]);
    }

    #[test]
    fn super_climbs_to_the_root() {
        assert_eq!(tops("use super::log::Tail;", &["volume"]), ["log"]);
        assert_eq!(
            tops("use super::{super::log, page};", &["volume", "open"]),
            ["log"]
        );
        assert_eq!(
            tops(
                "use super::page; use super::super::log;",
                &["volume", "open"]
            ),
            ["log"]
        );
    }

    #[test]
    fn super_in_an_inline_module_counts_it() {
        let source = "mod tests { use super::*; use super::super::log; } use super::gc;";
        assert_eq!(tops(source, &["volume"]), ["log", "gc"]);
    }

    #[test]
    fn a_glob_of_the_root_is_seen() {
        assert_eq!(tops("use crate::*;", &["volume"]), ["*"]);
    }

    #[test]
    fn visibility_is_not_an_import() {
        let source = "pub(crate) fn f() {} pub(super) struct S; pub(in crate::log) fn g() {}";
        assert_eq!(tops(source, &["volume"]), ["log"]);
    }

    #[test]
    fn lines_are_told() {
        let found = imports(
            "\n\nuse crate::{\n    log,\n    gc,\n};",
            &["volume".to_owned()],
        );
        assert_eq!(found[1].line, 5);
    }
}
