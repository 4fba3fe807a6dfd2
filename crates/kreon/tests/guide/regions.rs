//! Options of a region.

use std::time::Duration;

use kreon::{Compression, RegionOptions, Store};

use crate::Place;

fn make(store: &Store) -> kreon::Result<()> {
    let options = RegionOptions::new()
        .compression(Compression::Lz4)
        .ttl(Duration::from_secs(3600))
        .inline_value_bytes_max(128)
        .growth_factor(4);
    let documents = store.region_with("documents", &options)?; // made so, if it is not there
    let changed = documents.options().ttl(None);
    documents.set_options(&changed)?; // from now on
    Ok(())
}

#[test]
fn a_region_has_options_of_its_own() {
    let place = Place::new();
    make(&place.store).unwrap();
    let documents = place.store.existing_region("documents").unwrap();
    assert_eq!(documents.options().compression, Compression::Lz4);
    assert_eq!(documents.options().ttl, None);
}
