//! Elements for those who wait for a list: see [`Waiters`](crate::keyspace::Waiters).

use std::sync::Arc;

use super::lists;
use crate::keyspace::{
    Access, Collection, DbKey, Effects, Failure, Held, Keyspace, Kind, Served, Source,
};

/// Whether nobody waits for what a command has done.
pub(super) fn is_told_at_once(keyspace: &Keyspace, effects: &Effects) -> bool {
    !effects.lists.iter().any(|key| keyspace.waiters().has(key))
}

/// Serves those who wait for the lists that got elements, with the locks of their keys. Waits for the device. What fails is
/// logged: the command has been applied.
pub(super) fn tell(keyspace: &Arc<Keyspace>, held: &Held, effects: &Effects) {
    for key in &effects.lists {
        while keyspace.waiters().has(key) {
            match serve_one(keyspace, held, key) {
                Ok(true) => (),
                Ok(false) => break,
                Err(failure) => {
                    let error = failure.into_error().0;
                    tracing::error!(%error, "a waiting client was not served");
                    break;
                }
            }
        }
    }
}

/// `false` if there is nothing to give, or nobody left.
fn serve_one(keyspace: &Arc<Keyspace>, held: &Held, key: &DbKey) -> Result<bool, Failure> {
    let mut access = Access::new(keyspace, key.0, Source::Device);
    let list = access.head(key.0, &key.1)?;
    let Some(head) = list.filter(|head| head.kind == Kind::List) else {
        return Ok(false);
    };
    let Some(claim) = keyspace.waiters().claim(key) else {
        return Ok(false);
    };
    let list = Collection {
        db: key.0,
        key: key.1.clone(),
        head,
    };
    let taken = lists::take(&mut access, list, claim.end, 1)?;
    let (_, epoch) = super::steps::apply(keyspace, access, held)?;
    if let Some(element) = taken.into_iter().next() {
        claim.serve(Served {
            key: key.clone(),
            element: element.into(),
            epoch,
        });
    }
    Ok(true)
}
