//! The status of a store that another process has open.

use std::path::Path;

use kreon_base::{Error, Result};
use kreon_engine::STATUS_HEAD;

/// What the process that has a store open for writing says of it: see [`Options::status`](crate::Options::status).
///
/// ```
/// # fn main() -> kreon::Result<()> {
/// # let folder = tempfile::tempdir().unwrap();
/// let path = folder.path().join("store");
/// let store = kreon::Store::options().status(true).open(&path)?;
/// if let Some(status) = kreon::StoreStatus::of(&path)? {
///     assert!(status.prometheus().contains("kreon_store_epoch_total"));
/// }
/// store.close()?;
/// assert!(kreon::StoreStatus::of(&path)?.is_none());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreStatus {
    json: String,
    prometheus: String,
    table: String,
}

impl StoreStatus {
    /// Asks the process that has the store at `path` open. `None` if none has, if its user is another one (only root may
    /// ask everybody), or if it does not tell. The calling process may be the one.
    ///
    /// # Errors
    /// `NotFound`: there is no file. `Io`: the process did not answer within five seconds, or not as this version does.
    pub fn of(path: impl AsRef<Path>) -> Result<Option<Self>> {
        match kreon_device::ask_status(path.as_ref())? {
            Some(answer) => Self::read(answer).map(Some),
            None => Ok(None),
        }
    }

    /// The figures of [`Store::stats`](crate::Store::stats) as one JSON object with the names of the regions; `docs/stats.md`
    /// in the repository lists the fields.
    pub fn json(&self) -> &str {
        &self.json
    }

    /// The same as metrics for Prometheus, as [`Stats::to_prometheus`](crate::Stats::to_prometheus) has them.
    pub fn prometheus(&self) -> &str {
        &self.prometheus
    }

    /// The same as tables for people, as [`Stats`](crate::Stats) displays them.
    pub fn table(&self) -> &str {
        &self.table
    }

    fn read(answer: Vec<u8>) -> Result<Self> {
        let answer = String::from_utf8(answer).map_err(|_| no_answer())?;
        let mut rest = answer.strip_prefix(STATUS_HEAD).ok_or_else(no_answer)?;
        let (mut json, mut prometheus, mut table) = (None, None, None);
        while !rest.is_empty() {
            let (line, behind) = rest.split_once('\n').ok_or_else(no_answer)?;
            let (name, len_bytes) = line.split_once(' ').ok_or_else(no_answer)?;
            let len_bytes: usize = len_bytes.parse().map_err(|_| no_answer())?;
            let (part, behind) = behind.split_at_checked(len_bytes).ok_or_else(no_answer)?;
            rest = behind;
            match name {
                "json" => json = Some(part),
                "prometheus" => prometheus = Some(part),
                "table" => table = Some(part),
                // Later versions may tell more.
                _ => {}
            }
        }
        let owned = |part: Option<&str>| part.map(str::to_owned).ok_or_else(no_answer);
        Ok(Self {
            json: owned(json)?,
            prometheus: owned(prometheus)?,
            table: owned(table)?,
        })
    }
}

fn no_answer() -> Error {
    let error = std::io::Error::from(std::io::ErrorKind::InvalidData);
    Error::io("read the status of an open store", error)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<StoreStatus> {
        StoreStatus::read(text.as_bytes().to_vec())
    }

    #[test]
    fn parts_are_told_apart_by_their_lengths_and_unknown_ones_passed_over() {
        let parts = "json 2\n{}later 3\nx\nytable 0\nprometheus 4\na 1\n";
        let status = read(&format!("{STATUS_HEAD}{parts}")).unwrap();
        assert_eq!((status.json(), status.table()), ("{}", ""));
        assert_eq!(status.prometheus(), "a 1\n");
    }

    #[test]
    fn an_answer_that_was_cut_off_or_is_something_else_is_an_error() {
        let whole = format!("{STATUS_HEAD}json 2\n{{}}prometheus 2\na\ntable 3\nabc");
        assert!(read(&whole).is_ok());
        for end in 0..whole.len() {
            assert!(read(&whole[..end]).is_err(), "{end}");
        }
        assert!(StoreStatus::read(vec![0xff, 0xfe]).is_err());
        assert!(read("kreon status 2\n").is_err());
    }
}
