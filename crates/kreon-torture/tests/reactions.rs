//! That a fault is told as what it is.

use kreon_base::ErrorKind;
use kreon_engine::{Durability, Engine, Operation};
use kreon_sim::{Call, Effect, Fault};
use kreon_torture::damage::build::{device, open};

#[test]
fn a_region_that_cannot_be_read_is_not_called_damaged() {
    let device = device(Default::default(), true);
    let engine = open(&device).unwrap();
    let region = engine.region("gone").unwrap();
    let put = Operation {
        region: &region,
        key: b"key",
        value: Some(b"value"),
    };
    engine.write(&[put], Durability::Sync).unwrap();
    engine.checkpoint().unwrap();
    drop(engine);
    let engine: Engine = open(&device).unwrap();
    device.inject(Fault::nth(1, Call::Read, Effect::Io));
    let error = engine.drop_region("gone").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io, "{error}");
    engine.drop_region("gone").unwrap();
}
