//! Which processes have a volume open, for the message that it is busy.

use std::fmt::Write as _;
use std::path::Path;

use kreon_base::{Error, ErrorKind};

use crate::system;

/// Most processes that a message names.
const NAMED_MAX: usize = 4;

/// A process that holds a lock on a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Holder {
    pub pid: u32,
    /// The name of its command; none if it cannot be told.
    pub name: Option<String>,
}

/// That `path` is open elsewhere, and by whom as far as the system tells.
pub(super) fn busy(path: &Path) -> Error {
    let holders = rustix::fs::stat(path).map(|file| system::lock_holders(&file));
    let told = told(&holders.unwrap_or_default());
    Error::new(
        ErrorKind::Busy,
        format!("{} is open already, {told}", path.display()),
    )
}

fn told(holders: &[Holder]) -> String {
    if holders.is_empty() {
        return "here or in another process".to_owned();
    }
    let mut text = String::new();
    for holder in holders.iter().take(NAMED_MAX) {
        let comma = if text.is_empty() { "" } else { ", " };
        let name = match (&holder.name, holder.pid == std::process::id()) {
            (_, true) => " (this one)".to_owned(),
            (Some(name), false) => format!(" ({})", name.escape_debug()),
            (None, false) => String::new(),
        };
        let _ = write!(text, "{comma}in process {}{name}", holder.pid);
    }
    match holders.len().saturating_sub(NAMED_MAX) {
        0 => text,
        more => text + &format!(" and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_holders_are_named_and_the_rest_counted() {
        let holder = |pid| Holder {
            pid,
            name: Some(format!("a\n{pid}")),
        };
        assert_eq!(told(&[]), "here or in another process");
        assert_eq!(told(&[holder(7)]), "in process 7 (a\\n7)");
        let own = told(&[holder(std::process::id())]);
        assert!(own.ends_with("(this one)"), "{own}");
        let many: Vec<_> = (1..=6).map(|pid| Holder { pid, name: None }).collect();
        let many = told(&many);
        assert!(many.ends_with("in process 4 and 2 more"), "{many}");
    }
}
