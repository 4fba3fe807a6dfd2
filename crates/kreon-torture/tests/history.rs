//! Bounded runs of the history judge on real stores, and of the metamorphic runs.

use std::time::Duration;

use kreon_torture::{Counts, history, metamorphic};

#[test]
fn what_concurrent_clients_see_can_be_explained() {
    let classes = [
        "get",
        "put",
        "batch",
        "snapshot",
        "scan",
        "load",
        "image",
        "get_async",
    ];
    let mut counts = Counts::default();
    // Once, as a rule; on a busy machine a class may wait for its turn.
    for seed in 1..10 {
        counts.add(history(Duration::from_secs(4), seed));
        let is_whole = classes
            .iter()
            .all(|class| counts.tried.contains_key(*class));
        if is_whole || counts.failed > 0 {
            break;
        }
    }
    assert_eq!(counts.failed, 0, "{counts}");
    for class in classes {
        assert!(counts.tried.contains_key(class), "{counts}");
    }
    assert!(!counts.tried.contains_key("no verdict"), "{counts}");
}

#[test]
fn answers_do_not_depend_on_settings() {
    let counts = metamorphic(12, 1);
    assert_eq!(counts.failed, 0, "{counts}");
    assert!(counts.total() > 1000, "{counts}");
}
