//! Bounded runs of the history judge on real stores, and of the metamorphic runs.

use std::time::Duration;

use kreon_torture::{history, metamorphic};

#[test]
fn what_concurrent_clients_see_can_be_explained() {
    let counts = history(Duration::from_secs(4), 1);
    assert_eq!(counts.failed, 0, "{counts}");
    for class in [
        "get",
        "put",
        "batch",
        "snapshot",
        "scan",
        "load",
        "image",
        "get_async",
    ] {
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
