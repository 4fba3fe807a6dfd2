//! What a server's answers mean.

use zookeeper_client::{Error, MultiWriteError, MultiWriteResult, Stat};

use crate::command::{Node, Reply, Version};

/// What a refusal says; none: nothing is known for sure.
fn refusal(error: &Error) -> Option<Reply> {
    match error {
        Error::NoNode => Some(Reply::Missing),
        Error::NodeExists => Some(Reply::Exists),
        Error::BadVersion => Some(Reply::Conflict),
        Error::NotEmpty => Some(Reply::HasChildren),
        Error::NoChildrenForEphemerals => Some(Reply::Childless),
        _ => None,
    }
}

fn version(stat: &Stat) -> Version {
    // Negative after 2^31 changes of one node: then no compare-and-set succeeds any more.
    Version(u64::try_from(stat.version).unwrap_or(u64::MAX))
}

/// To a read of a node.
pub fn of_get(answer: Result<(Vec<u8>, Stat), Error>) -> Reply {
    match answer {
        Ok((data, stat)) => Reply::Node(Node {
            data: data.into(),
            version: version(&stat),
        }),
        Err(error) => refusal(&error).unwrap_or(Reply::Unknown),
    }
}

/// To a read of the names below a node.
pub fn of_children(answer: Result<Vec<String>, Error>) -> Reply {
    match answer {
        Ok(mut names) => {
            names.sort_unstable();
            Reply::Children(names)
        }
        Err(error) => refusal(&error).unwrap_or(Reply::Unknown),
    }
}

/// To a write of some operations; `single`: of one that is no part of a multi.
pub fn of_write(answer: Result<Vec<MultiWriteResult>, MultiWriteError>, single: bool) -> Reply {
    match answer {
        Ok(results) => {
            let mut replies: Vec<_> = results.into_iter().map(of_part).collect();
            match single {
                true => replies.pop().unwrap_or(Reply::Unknown),
                false => Reply::Done(replies),
            }
        }
        Err(MultiWriteError::RequestFailed { .. }) => Reply::Unknown,
        Err(MultiWriteError::OperationFailed { index, source }) => match refusal(&source) {
            None => Reply::Unknown,
            Some(why) if single => why,
            Some(why) => Reply::Refused(index, Box::new(why)),
        },
    }
}

fn of_part(result: MultiWriteResult) -> Reply {
    match result {
        MultiWriteResult::Check => Reply::Synced,
        MultiWriteResult::Delete => Reply::Deleted,
        MultiWriteResult::Create { path, .. } => Reply::Created(path),
        MultiWriteResult::SetData { stat } => Reply::Written(version(&stat)),
        // The crate may add kinds; none of them is asked for.
        _ => Reply::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_is_no_refusal_of_the_server_is_unknown() {
        for error in [
            Error::ConnectionLoss,
            Error::SessionExpired,
            Error::SessionMoved,
            Error::Timeout,
            Error::ClientClosed,
            Error::Throttled,
            Error::UnexpectedErrorCode(-4),
        ] {
            let failed = MultiWriteError::RequestFailed {
                source: error.clone(),
            };
            assert_eq!(of_write(Err(failed), true), Reply::Unknown, "{error}");
            let part = MultiWriteError::OperationFailed {
                index: 0,
                source: error.clone(),
            };
            assert_eq!(of_write(Err(part), false), Reply::Unknown, "{error}");
            assert_eq!(of_get(Err(error)), Reply::Unknown);
        }
    }

    #[test]
    fn a_refused_part_is_told_with_its_number() {
        let failed = |index| MultiWriteError::OperationFailed {
            index,
            source: Error::BadVersion,
        };
        assert_eq!(of_write(Err(failed(0)), true), Reply::Conflict);
        let refused = Reply::Refused(1, Box::new(Reply::Conflict));
        assert_eq!(of_write(Err(failed(1)), false), refused);
    }
}
