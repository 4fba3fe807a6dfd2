//! Stores that are abandoned, and members that fail.

use kreon_sim::{Call, Keep};

use super::*;

/// Ends the threads that wait for members, too.
struct EndedIfPanicking<'a>(&'a Primary);

impl Drop for EndedIfPanicking<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.members.change(|state| state.has_failed = true);
            _ = self.0.engine.abandon();
        }
    }
}

/// The keys that a store on `image` has.
fn keys_of(image: Image) -> Vec<Vec<u8>> {
    let bench = Bench::open(image, options()).unwrap();
    let region = bench.engine.existing_region("r").unwrap();
    let keys = (0..KEYS).map(name);
    let keys = keys.filter(|key| bench.get(&region, key).unwrap().is_some());
    let keys = keys.collect();
    assert_eq!(bench.problems(), Vec::<String>::new());
    keys
}

#[test]
fn an_abandoned_store_is_as_after_a_crash() {
    for background in [Background::Inline, Background::Threads] {
        let options = Options {
            background,
            ..options()
        };
        let primary = Primary::open(Image::default(), 1, options).unwrap();
        let region = primary.engine.region("r").unwrap();
        for key in 0..1500 {
            primary.put(&region, &name(key), &value(key));
        }
        primary.engine.sync().unwrap();
        let durable = primary.engine.log_durable();
        for key in 1500..1600 {
            primary.put(&region, &name(key), &value(key));
        }
        let flushes = primary.device.calls(Call::Flush);
        primary.engine.abandon().unwrap();
        let (image, calls) = (primary.device.image(), primary.device.calls(Call::Write));
        assert_eq!(primary.engine.log_durable(), durable, "nothing was settled");
        if background == Background::Inline {
            assert_eq!(primary.device.calls(Call::Flush), flushes);
        }
        let closed = |error: Error| assert_eq!(error.kind(), ErrorKind::Closed, "{error}");
        closed(primary.engine.sync().unwrap_err());
        closed(
            primary
                .engine
                .write_ahead(&[put(&region, b"key", b"value")])
                .unwrap_err(),
        );
        closed(primary.engine.occupied().unwrap_err());
        closed(primary.engine.background(Work::Spill).unwrap_err());
        primary.engine.abandon().unwrap();
        primary.engine.close().unwrap();
        let history = primary.device.history();
        drop(primary.engine);
        assert_eq!(
            primary.device.calls(Call::Write),
            calls,
            "nothing came later"
        );
        assert_eq!(Arc::strong_count(&primary.main), 1, "the device is dropped");
        assert_eq!(Arc::strong_count(&primary.log), 1);
        let kept = keys_of(image);
        assert!(kept.len() >= 1500, "{}", kept.len());
        let kept = keys_of(history.crash().image(&mut Keep::Nothing));
        let expected: Vec<_> = (0..kept.len().max(1500) as u32).map(name).collect();
        assert!(kept == expected, "all that was durable, and a prefix");
    }
}

#[test]
fn abandoning_ends_calls_that_wait_for_members() {
    let options = Options {
        background: Background::Threads,
        log_buffer_bytes: Some(4 << 20),
        ..options()
    };
    let primary = Primary::open(Image::default(), 1, options).unwrap();
    let region = primary.engine.region("r").unwrap();
    primary
        .members
        .land(&primary.engine, primary.engine.log_tail());
    primary.members.change(|state| {
        state.obliges = false;
        state.asked.clear();
    });
    let value = vec![7; 60_000];
    std::thread::scope(|scope| {
        let _ends = EndedIfPanicking(&primary);
        let syncs = scope.spawn(|| {
            let operation = put(&region, b"key", b"value");
            primary.engine.write(&[operation], Durability::Sync)
        });
        primary.members.wait_until_asked(1);
        // Fills the log's buffers, and waits.
        let fills = scope.spawn(|| {
            let puts = (0..1000).map(|key| {
                let key = name(key);
                primary.engine.write_ahead(&[put(&region, &key, &value)])
            });
            puts.take(1000).find_map(Result::err)
        });
        let mut tail = Lsn(0);
        while primary.engine.log_tail() > tail {
            tail = primary.engine.log_tail();
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        assert!(!fills.is_finished());
        primary.members.change(|state| state.has_failed = true);
        primary.engine.abandon().unwrap();
        // Whichever came first: the end of the members, or that of the store.
        let is_over = |error: Error| {
            assert!(
                matches!(error.kind(), ErrorKind::Closed | ErrorKind::Poisoned),
                "{error}"
            );
        };
        is_over(syncs.join().unwrap().unwrap_err());
        is_over(fills.join().unwrap().unwrap());
    });
}

#[test]
fn members_that_fail_end_all_writing_and_no_reading() {
    let primary = Primary::new();
    let region = primary.engine.region("r").unwrap();
    primary.put(&region, b"key", b"value");
    primary.members.change(|state| state.has_failed = true);
    let error = primary.engine.sync().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Poisoned);
    assert!(
        error.to_string().contains("the members are gone"),
        "{error}"
    );
    let later = primary
        .engine
        .write_ahead(&[put(&region, b"key", b"later")]);
    assert_eq!(later.unwrap_err().kind(), ErrorKind::Poisoned);
    assert!(primary.engine.checkpoint().is_err());
    assert_eq!(primary.get(&region, b"key").as_deref(), Some(&b"value"[..]));
}

#[test]
fn a_checkpoint_claims_no_more_than_the_members_have() {
    let primary = Primary::new();
    let region = primary.engine.region("r").unwrap();
    primary.put(&region, b"key", b"value");
    primary.members.change(|state| {
        state.obliges = false;
        state.asked.clear();
    });
    let epoch = |primary: &Primary| {
        let device: Arc<dyn Device> = primary.main.as_device();
        Engine::examine(&device).unwrap().superblock.epoch
    };
    let before = epoch(&primary);
    std::thread::scope(|scope| {
        let _ends = EndedIfPanicking(&primary);
        let checkpoint = scope.spawn(|| primary.engine.checkpoint());
        primary.members.wait_until_asked(1);
        std::thread::sleep(std::time::Duration::from_millis(20));
        assert!(!checkpoint.is_finished());
        assert_eq!(
            epoch(&primary),
            before,
            "no superblock before the members' answer"
        );
        primary.members.change(|state| state.obliges = true);
        checkpoint.join().unwrap().unwrap();
    });
    assert!(epoch(&primary) > before);
}
