//! `kreon completions`: what makes the user's shell complete the command's words.

use clap::{Args, Command};
use clap_complete::{Shell, generate};

use crate::failure::Result;
use crate::sink::Sink;

/// Print the completions of this command for your shell
///
/// bash: source <(kreon completions bash), in ~/.bashrc
/// zsh:  kreon completions zsh > FOLDER/_kreon, with FOLDER in $fpath
/// fish: kreon completions fish > ~/.config/fish/completions/kreon.fish
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub struct Completions {
    /// The shell
    shell: Shell,
}

impl Completions {
    pub fn run(&self, mut cli: Command, out: &mut Sink) -> Result<()> {
        let mut script = Vec::new();
        generate(self.shell, &mut cli, "kreon", &mut script);
        Ok(out.write(&script)?)
    }
}
