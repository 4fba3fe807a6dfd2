//! Where the shell's lines come from: an editor at a terminal, else standard input as it is.

use std::env;
use std::fs;
use std::io::{self, BufRead, IsTerminal};
use std::path::PathBuf;

use kreon::Error;
use rustyline::error::ReadlineError;
use rustyline::history::DefaultHistory;
use rustyline::{CompletionType, Config, Editor};

use super::complete::Completion;
use crate::failure::{Failure, Result};
use crate::session::Session;

/// A longer line from a pipe is refused: memory stays bounded.
const LINE_BYTES_MAX: u64 = 16 << 20;

/// The source of lines.
pub enum Lines<'s> {
    Terminal {
        editor: Box<Editor<Completion<'s>, DefaultHistory>>,
        history: Option<PathBuf>,
    },
    Pipe(io::StdinLock<'static>),
}

impl<'s> Lines<'s> {
    /// Whether a person types the lines.
    pub fn at_terminal() -> bool {
        io::stdin().is_terminal()
    }

    pub fn open(session: &'s Session) -> Result<Self> {
        if !Self::at_terminal() {
            return Ok(Self::Pipe(io::stdin().lock()));
        }
        let config = Config::builder()
            .completion_type(CompletionType::List)
            .build();
        let mut editor = Editor::with_config(config).map_err(failed)?;
        editor.set_helper(Some(Completion::new(session)));
        let history = history_path();
        if let Some(path) = &history {
            // The first time there is none yet; a shell without history is still a shell.
            let _ = editor.load_history(path);
        }
        Ok(Self::Terminal {
            editor: Box::new(editor),
            history,
        })
    }

    /// The next line; `None` at the end of the input.
    pub fn next(&mut self, prompt: &str) -> Result<Option<String>> {
        match self {
            Self::Terminal { editor, .. } => loop {
                match editor.readline(prompt) {
                    Ok(line) => {
                        // Refused only for lines that the history leaves out, such as repeated ones.
                        let _ = editor.add_history_entry(&line);
                        return Ok(Some(line));
                    }
                    // Ctrl-C: a fresh prompt.
                    Err(ReadlineError::Interrupted) => {}
                    Err(ReadlineError::Eof) => return Ok(None),
                    Err(error) => return Err(failed(error)),
                }
            },
            Self::Pipe(stdin) => read_line(stdin),
        }
    }

    /// Keeps the history for the next shell.
    pub fn close(self) {
        if let Self::Terminal {
            mut editor,
            history: Some(path),
        } = self
            && path
                .parent()
                .is_some_and(|dir| fs::create_dir_all(dir).is_ok())
        {
            // Losing the history is no reason for the shell to fail.
            let _ = editor.save_history(&path);
        }
    }
}

fn read_line(stdin: &mut impl BufRead) -> Result<Option<String>> {
    let mut line = Vec::new();
    let taken = io::Read::take(&mut *stdin, LINE_BYTES_MAX)
        .read_until(b'\n', &mut line)
        .map_err(|error| Error::io("read standard input", error))?;
    if taken == 0 {
        return Ok(None);
    }
    if taken as u64 == LINE_BYTES_MAX && !line.ends_with(b"\n") {
        return Err(Failure::usage(format!(
            "a line has more than {LINE_BYTES_MAX} bytes"
        )));
    }
    match String::from_utf8(line) {
        Ok(line) => Ok(Some(line.trim_end_matches(['\r', '\n']).to_owned())),
        Err(_) => Err(Failure::usage(
            "a line is not UTF-8: write other bytes as \\xNN, in quotes, with --escapes",
        )),
    }
}

fn failed(error: ReadlineError) -> Failure {
    Error::io("read the terminal", io::Error::other(error)).into()
}

/// `kreon/history` in the user's state folder (`XDG_STATE_HOME`).
fn history_path() -> Option<PathBuf> {
    let folder = |name| {
        env::var_os(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    folder("XDG_STATE_HOME")
        .or_else(|| folder("HOME").map(|home| home.join(".local/state")))
        .map(|state| state.join("kreon").join("history"))
}
