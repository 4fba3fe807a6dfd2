//! What is wrong with a command is said before it is sent.

use kreon_base::{Error, ErrorKind, Result};

use crate::command::{Command, Operation};
use crate::coordinator::DATA_BYTES_MAX;

/// Longest path, in bytes.
const PATH_BYTES_MAX: usize = 1024;

/// # Errors
/// `InvalidArgument`: see [`Coordinator::send`](crate::Coordinator::send).
pub fn check(command: &Command) -> Result<()> {
    let bytes = match command {
        Command::Sync => 0,
        Command::Get { path, .. } | Command::Children { path, .. } => {
            if path != "/" {
                check_path(path)?;
            }
            path.len()
        }
        Command::Create(path, data, _) | Command::Set(path, data, _) => bytes_of(path, data)?,
        Command::Delete(path, _) => bytes_of(path, &[])?,
        Command::Multi(operations) => {
            let mut bytes = 0;
            for operation in operations {
                bytes += match operation {
                    Operation::Check(path, _) | Operation::Delete(path, _) => bytes_of(path, &[])?,
                    Operation::Set(path, data, _) | Operation::Create(path, data, _) => {
                        bytes_of(path, data)?
                    }
                };
            }
            bytes
        }
    };
    if bytes > DATA_BYTES_MAX {
        let message = format!("a command of {bytes} bytes: at most {DATA_BYTES_MAX}");
        return Err(Error::new(ErrorKind::InvalidArgument, message));
    }
    Ok(())
}

fn bytes_of(path: &str, data: &[u8]) -> Result<usize> {
    check_path(path)?;
    Ok(path.len() + data.len())
}

/// A path of a node that can be made: from the root, without empty names, `.` and `..`, and of printable characters.
fn check_path(path: &str) -> Result<()> {
    let names = path.strip_prefix('/').map(|names| names.split('/'));
    let is_name = |name: &str| !name.is_empty() && name != "." && name != "..";
    let sound = names.is_some_and(|mut names| names.all(is_name))
        && path.len() <= PATH_BYTES_MAX
        && path.bytes().all(|byte| (b' '..=b'~').contains(&byte));
    if sound {
        return Ok(());
    }
    let message = format!("{path:?} is no path of a node");
    Err(Error::new(ErrorKind::InvalidArgument, message))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::Version;

    #[test]
    fn a_path_that_no_node_can_have_is_refused() {
        for path in [
            "", "a", "/", "/a/", "//a", "/a/./b", "/..", "/a\u{1}", "/\u{e4}",
        ] {
            let delete = Command::Delete(path.into(), Version(0));
            let error = check(&delete).expect_err(path);
            assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{path}");
            let multi = Command::Multi(vec![Operation::Check(path.into(), Version(0))]);
            assert!(check(&multi).is_err(), "{path}");
        }
        check(&Command::Delete("/kreon/prod/live/1-ab".into(), Version(0))).unwrap();
    }

    #[test]
    fn the_data_of_one_command_is_limited_as_a_whole() {
        let part = |bytes| Operation::Set("/a".into(), vec![0; bytes].into(), Version(0));
        let half = DATA_BYTES_MAX / 2;
        check(&Command::Multi(vec![part(half - 2), part(half - 2)])).unwrap();
        assert!(check(&Command::Multi(vec![part(half), part(half)])).is_err());
        let children = Command::Children {
            path: "/".into(),
            watch: false,
        };
        check(&children).unwrap();
    }
}
