//! Transactions and atomic updates.

use kreon::{Durability, Error, ErrorKind, Isolation, Region, Store, TransactionOptions, Update};

use crate::Place;

fn take_job(store: &Store, jobs: &Region, done: &Region) -> kreon::Result<bool> {
    store.transact(|t| {
        let Some((number, job)) = t.range(jobs, ..)?.next().transpose()? else {
            return Ok(false);
        };
        t.delete(jobs, &number)?;
        t.put(done, &number, &job)?;
        Ok(true)
    })
}

fn by_hand(store: &Store, cities: &Region) -> kreon::Result<()> {
    let options = TransactionOptions::default().isolation(Isolation::Snapshot);
    let mut t = store.transaction_with(options);
    let people = t.get_for_update(cities, "chania")?.unwrap_or_default();
    let before = t.set_savepoint();
    t.put(cities, "chania", [&people[..], b"0"].concat())?;
    if people.len() > 6 {
        t.roll_back_to(before)?;
    }
    match t.commit(Durability::Sync) {
        Err(error) if error.kind() == ErrorKind::Conflict => Err(Error::invalid("run it again")),
        outcome => outcome,
    }
}

fn single_keys(cities: &Region) -> kreon::Result<()> {
    cities.increment("visits", 1)?; // 8 bytes, an i64 in little endian
    cities.put_if_absent("owner", "anna")?;
    cities.compare_and_swap("owner", Some(b"anna"), Some(b"bert"))?;
    cities.update("log", |old| {
        Update::Put([old.unwrap_or_default(), b"one more;"].concat())
    })?;
    Ok(())
}

#[test]
fn transactions_and_updates_are_one_step() {
    let place = Place::new();
    let cities = place.region(&[("chania", "53910")]);
    let [jobs, done] = ["jobs", "done"].map(|name| place.store.region(name).unwrap());
    jobs.put("1", "count").unwrap();
    assert!(take_job(&place.store, &jobs, &done).unwrap());
    assert!(!take_job(&place.store, &jobs, &done).unwrap());
    assert!(done.contains("1").unwrap());
    by_hand(&place.store, &cities).unwrap();
    assert_eq!(cities.get("chania").unwrap().unwrap(), b"539100".as_slice());
    single_keys(&cities).unwrap();
    assert_eq!(cities.get("owner").unwrap().unwrap(), b"bert".as_slice());
}
