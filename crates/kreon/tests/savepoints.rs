//! What a transaction that returned to a savepoint still holds on to.

use kreon::{Durability, ErrorKind, Isolation, Store, TransactionOptions};

#[test]
fn a_key_read_for_update_stays_so_when_an_own_write_of_it_is_undone() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path().join("store")).unwrap();
    let region = store.region("r").unwrap();
    for isolation in [Isolation::Snapshot, Isolation::Serializable] {
        for is_changed in [true, false] {
            region.put("key", "1").unwrap();
            let options = TransactionOptions::default().isolation(isolation);
            let mut transaction = store.transaction_with(options);
            let savepoint = transaction.set_savepoint();
            transaction.put(&region, "key", "own").unwrap();
            let own = transaction.get_for_update(&region, "key").unwrap();
            assert_eq!(own.as_deref(), Some(b"own".as_slice()));
            transaction.roll_back_to(savepoint).unwrap();
            transaction.put(&region, "other", "2").unwrap();
            if is_changed {
                region.put("key", "by somebody else").unwrap();
            }
            let outcome = transaction.commit(Durability::Buffered);
            let kind = outcome.map_err(|error| error.kind());
            let expected = match is_changed {
                true => Err(ErrorKind::Conflict),
                false => Ok(()),
            };
            assert_eq!(kind, expected, "{isolation:?}");
        }
    }
}
