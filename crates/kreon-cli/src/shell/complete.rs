//! What Tab offers in the shell: commands, their options, regions, and keys of the current region.

use clap::{Command, CommandFactory};
use kreon::{KeyRange as _, prefix_bounds};
use rustyline::completion::{Completer, Pair};
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::validate::Validator;
use rustyline::{Context, Helper};

use super::line::Line;
use crate::encoding::{Controls, Encoding, shown};
use crate::place::Direction;
use crate::session::Session;

/// Keys that are read for one Tab.
const KEYS_MAX: usize = 100;

/// Completes the last word of a line.
pub struct Completion<'s> {
    session: &'s Session,
    commands: Command,
}

/// A line up to the cursor.
#[derive(Debug, PartialEq, Eq)]
struct Typed {
    /// The words before the last.
    before: Vec<String>,
    /// The last word as far as it is typed, without its quotes.
    last: String,
    /// Where the last word begins in the line.
    start: usize,
}

/// What can stand in a place of a line.
enum Place {
    Command,
    Option,
    Action,
    Region,
    Key,
    Nothing,
}

impl<'s> Completion<'s> {
    pub fn new(session: &'s Session) -> Self {
        let mut commands = Line::command();
        commands.build();
        Self { session, commands }
    }

    fn candidates(&self, typed: &Typed) -> Vec<String> {
        let word = typed.last.as_str();
        let before: Vec<_> = typed.before.iter().map(String::as_str).collect();
        let command = before
            .first()
            .and_then(|name| self.commands.find_subcommand(name));
        let all = match place(&before, word) {
            Place::Command => names(&self.commands),
            Place::Action => command.map(names).unwrap_or_default(),
            Place::Option => command.map(options).unwrap_or_default(),
            Place::Region => self.session.place.region_names().unwrap_or_default(),
            Place::Key => return self.keys(word),
            Place::Nothing => Vec::new(),
        };
        all.into_iter()
            .filter(|name| name.starts_with(word))
            .collect()
    }

    /// The first keys that start with `typed`, as they would be typed. A failure offers nothing: it is told when
    /// the line is run.
    fn keys(&self, typed: &str) -> Vec<String> {
        let encoding = self.session.key_encoding;
        let mut prefix = Vec::new();
        let Ok(()) = encoding.decode_into(typed.as_bytes(), &mut prefix) else {
            return Vec::new();
        };
        let Ok(region) = self.session.existing_region() else {
            return Vec::new();
        };
        let keys = region.keys(prefix_bounds(&prefix).into_bounds(), Direction::Ascending);
        let Ok(mut keys) = keys else {
            return Vec::new();
        };
        std::iter::from_fn(|| keys.next().ok().flatten())
            .take(KEYS_MAX)
            .filter_map(|key| typeable(encoding, &key))
            .collect()
    }
}

/// The key as it can be typed in a line, if it can.
fn typeable(encoding: Encoding, key: &[u8]) -> Option<String> {
    let mut text = Vec::new();
    encoding.encode_into(key, Controls::Escape, &mut text);
    let text = String::from_utf8(text).ok()?;
    (!text.contains(char::is_control)).then_some(text)
}

fn names(command: &Command) -> Vec<String> {
    command
        .get_subcommands()
        .map(|command| command.get_name().to_owned())
        .collect()
}

fn options(command: &Command) -> Vec<String> {
    let visible = command.get_arguments().filter(|arg| !arg.is_hide_set());
    visible
        .filter_map(|arg| arg.get_long())
        .map(|long| format!("--{long}"))
        .collect()
}

fn place(before: &[&str], word: &str) -> Place {
    let Some((&command, arguments)) = before.split_first() else {
        return Place::Command;
    };
    match (command, arguments.last().copied()) {
        ("help", None) => Place::Command,
        ("region", None) | ("regions", Some("drop" | "options")) => Place::Region,
        ("regions", None) => Place::Action,
        (_, Some("-r" | "--region")) => Place::Region,
        _ if word.starts_with('-') => Place::Option,
        (
            "scan" | "count" | "delete",
            Some("-p" | "--prefix" | "-f" | "--from" | "-t" | "--to"),
        ) => Place::Key,
        ("delete" | "persist", _) | ("get" | "put" | "ttl", None) => Place::Key,
        _ => Place::Nothing,
    }
}

/// The line up to the cursor, whose last word may end within a quote.
fn typed(line: &str) -> Option<Typed> {
    let words = ["", "'", "\""]
        .iter()
        .find_map(|quote| shell_words::split(&format!("{line}{quote}")).ok())?;
    // The last word begins behind the last blank that divides words: all before it is whole.
    let starts = line.char_indices().filter(|(_, c)| c.is_whitespace());
    let start = starts
        .map(|(at, c)| at + c.len_utf8())
        .filter(|&start| {
            !line[..start]
                .trim_end_matches(char::is_whitespace)
                .ends_with('\\')
        })
        .rfind(|&start| shell_words::split(&line[..start]).is_ok())
        .unwrap_or(0);
    let before = shell_words::split(&line[..start]).ok()?;
    let last = words.get(before.len()).cloned().unwrap_or_default();
    Some(Typed {
        before,
        last,
        start,
    })
}

impl Completer for Completion<'_> {
    type Candidate = Pair;

    fn complete(
        &self,
        line: &str,
        cursor: usize,
        _context: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<Pair>)> {
        let Some(typed) = line.get(..cursor).and_then(typed) else {
            return Ok((cursor, Vec::new()));
        };
        let candidates = self.candidates(&typed).into_iter().map(|word| Pair {
            display: shown(Encoding::Escapes, word.as_bytes()),
            replacement: shell_words::quote(&word).into_owned(),
        });
        Ok((typed.start, candidates.collect()))
    }
}

impl Helper for Completion<'_> {}
impl Hinter for Completion<'_> {
    type Hint = String;
}
impl Highlighter for Completion<'_> {}
impl Validator for Completion<'_> {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interrupt::Interrupt;
    use kreon::Store;

    #[test]
    fn the_last_word_is_found_also_within_quotes() {
        for (line, before, last, start) in [
            ("", &[][..], "", 0),
            ("ge", &[], "ge", 0),
            ("get ", &["get"], "", 4),
            ("get a", &["get"], "a", 4),
            ("get 'a b", &["get"], "a b", 4),
            ("get \"a b", &["get"], "a b", 4),
            (r"get a\ b", &["get"], "a b", 4),
            ("put 'k 1' v", &["put", "k 1"], "v", 10),
            ("get grüße", &["get"], "grüße", 4),
        ] {
            let typed = typed(line).unwrap();
            assert_eq!(typed.before, before, "{line}");
            assert_eq!((typed.last.as_str(), typed.start), (last, start), "{line}");
        }
    }

    #[test]
    fn commands_regions_and_keys_are_offered_where_they_can_stand() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::options()
            .memory_bytes(8 << 20)
            .open(folder.path().join("store"))
            .unwrap();
        let towns = store.region("towns").unwrap();
        for key in [&b"gr/a"[..], b"gr/b c", b"it/d", b"gr/\xff", b"gr/\n"] {
            towns.put(key, "v").unwrap();
        }
        let many = store.region("many").unwrap();
        for i in 0..KEYS_MAX + 50 {
            many.put(format!("k{i:04}"), "v").unwrap();
        }
        let session = Session::over(store, "towns", Interrupt::default());
        let completion = Completion::new(&session);
        let offered = |line: &str| completion.candidates(&typed(line).unwrap());
        assert_eq!(offered("sc"), ["scan"]);
        assert_eq!(offered("help sc"), ["scan"]);
        assert_eq!(offered("regions dr"), ["drop"]);
        assert_eq!(offered("region t"), ["towns"]);
        assert_eq!(offered("regions drop m"), ["many"]);
        assert_eq!(offered("scan -r t"), ["towns"]);
        assert_eq!(offered("scan --pre"), ["--prefix"]);
        for line in [
            "get gr/",
            "put gr/",
            "delete x gr/",
            "scan --prefix gr/",
            "get 'gr/",
        ] {
            assert_eq!(offered(line), ["gr/a", "gr/b c"], "{line}");
        }
        assert!(offered("put k v").is_empty());
        assert!(offered("get nothing").is_empty());
        session.set_region_name("many");
        assert_eq!(offered("get k").len(), KEYS_MAX);
        session.set_region_name("nowhere");
        assert!(offered("get ").is_empty());
    }
}
