//! Volumes that belong to a server of a cluster are opened by that server only.
//!
//! An opening without a term uses up an incarnation, and writes what the other members of the group do not have.

use std::path::Path;

use crate::{Error, Result};

/// A server of a cluster marks its data directory with a file of this name.
const MARK: &str = "CLUSTER";

/// # Errors
/// `InvalidArgument`: the volume at `path` belongs to a server of a cluster.
pub fn refuse_member(path: &Path) -> Result<()> {
    // A link may lead into the directory of a server; a volume that is still to be made has no place of its own yet.
    let place = path.canonicalize();
    let place = place.as_deref().unwrap_or(path);
    let mark = place.parent().map(|folder| folder.join(MARK));
    // Where that cannot be told, the volume cannot be opened either.
    match mark.filter(|mark| mark.exists()) {
        None => Ok(()),
        Some(mark) => Err(Error::invalid(format!(
            "the volume belongs to a server of a cluster ({} says so), and only that server may open it; ask the cluster \
             instead (`kreon --cluster`)",
            mark.display()
        ))),
    }
}
