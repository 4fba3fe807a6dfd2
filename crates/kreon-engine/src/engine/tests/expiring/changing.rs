//! Updates and transactions of keys that expire.

use kreon_base::ErrorKind;

use super::*;
use crate::transaction::Isolation;

#[test]
fn a_put_removes_the_expiry_and_an_update_does_as_it_is_told() {
    let timed = Timed::new();
    let until = timed.now() + TTL;
    let value = || b"another".to_vec();
    let fresh = || {
        timed.put_until(b"k", b"v", Some(until));
        assert_eq!(timed.expiry(b"k"), Some(Some(until)));
    };
    fresh();
    timed.put_until(b"k", b"w", None);
    assert_eq!(timed.expiry(b"k"), Some(None));
    fresh();
    assert_eq!(
        timed.update(b"k", Update::Put(value())).unwrap().ms(),
        until
    );
    assert_eq!(timed.expiry(b"k"), Some(None));
    fresh();
    timed.update(b"k", Update::PutKeepingTtl(value()));
    assert_eq!(timed.expiry(b"k"), Some(Some(until)));
    let ttl = std::time::Duration::from_micros(2_000_001);
    timed.update(b"k", Update::PutWithTtl(value(), ttl));
    assert_eq!(timed.expiry(b"k"), Some(Some(timed.now() + 2001)));
    timed.wait(3000);
    assert_eq!(timed.expiry(b"k"), None);
    // A key that has ended has no expiry to keep.
    assert_eq!(timed.update(b"k", Update::PutKeepingTtl(value())), None);
    assert_eq!(timed.expiry(b"k"), Some(None));
    let none = std::time::Duration::ZERO;
    assert!(timed.bench.engine.expiry_after(none).is_err());
}

#[test]
fn an_update_does_not_bring_back_what_ended_while_it_ran() {
    let timed = Timed::new();
    let until = timed.now() + TTL;
    timed.put_until(b"k", b"v", Some(until));
    let mut seen = Vec::new();
    let change = |current: Option<Current<'_>>| {
        seen.push(current.is_some());
        timed.wait(TTL);
        Ok(current.map_or(Update::Keep, |current| Update::Put(current.value.to_vec())))
    };
    let engine = &timed.bench.engine;
    let before = engine.update(&timed.region, b"k", Durability::Buffered, change);
    assert_eq!((before.unwrap(), seen), (None, vec![true, false]));
    assert_eq!(timed.expiry(b"k"), None);
}

#[test]
fn that_a_key_expires_is_no_conflict_for_a_transaction_that_read_it() {
    let timed = Timed::new();
    let engine = &timed.bench.engine;
    timed.fill();
    timed.put_until(b"a", b"", None);
    let mut transaction = engine.transaction(Isolation::Serializable, 1 << 20);
    let read = transaction.get(&timed.region, b"logged", Own).unwrap();
    assert!(read.is_some());
    let bounds = (Bound::Unbounded, Bound::Unbounded);
    let mut scan = transaction.scan(&timed.region, bounds).unwrap();
    let mut count = 0;
    while scan.next(true).unwrap().is_some() {
        count += 1;
    }
    assert_eq!(count, 7);
    drop(scan);
    timed.wait(TTL);
    // The levels change, so that the commit has to look into them.
    let other = engine.region("other").unwrap();
    timed.bench.put(&other, b"k", b"v").unwrap();
    engine.checkpoint().unwrap();
    let expires = Timestamp::of_ms(timed.now() + TTL);
    transaction
        .put_until(&timed.region, b"mine", b"v", expires)
        .unwrap();
    let own = transaction.attributes(&timed.region, b"mine").unwrap();
    assert_eq!(own.unwrap().expires(), Some(expires));
    engine.commit(transaction, Durability::Buffered).unwrap();
    assert_eq!(timed.expiry(b"mine"), Some(Some(expires.ms())));
    timed.wait(TTL);
    assert_eq!(timed.expiry(b"mine"), None);
}

#[test]
fn a_deletion_has_no_expiry() {
    let timed = Timed::new();
    let deletion = Operation {
        region: &timed.region,
        key: b"k",
        value: None,
        is_range: false,
        terms: Terms::until(Some(Timestamp::MAX)),
    };
    let engine = &timed.bench.engine;
    let error = engine.write(&[deletion], Durability::Buffered).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
}
