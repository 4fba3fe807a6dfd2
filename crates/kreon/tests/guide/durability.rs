//! Durability.

use kreon::{Durability, Region, Store, WriteBatch};

use crate::Place;

fn each_write(store: &Store, cities: &Region) -> kreon::Result<()> {
    cities.put("draft", "1")?; // as the store was opened: here `Buffered`
    cities.put_with("paid", "1", Durability::Sync)?; // with all earlier writes
    cities.put("draft", "2")?;
    store.sync()?; // all that was written so far
    Ok(())
}

fn batch(store: &Store, cities: &Region, towns: &Region) -> kreon::Result<()> {
    let mut batch = WriteBatch::new();
    batch.put(cities, "agios", "1000");
    batch.delete(towns, "agios");
    batch.delete_range(towns, "old/".."old0")?;
    store.write(batch, Durability::Sync)?;
    Ok(())
}

async fn many(cities: &Region) -> kreon::Result<()> {
    // Begun together: one flush, or a few.
    let writes: Vec<_> = (0..100_u32)
        .map(|number| cities.put_async(number.to_be_bytes(), "value"))
        .collect();
    for write in writes {
        write.await?;
    }
    Ok(())
}

#[test]
fn writes_are_as_durable_as_they_say() {
    let place = Place::new();
    let cities = place.region(&[]);
    let towns = place.store.region("towns").unwrap();
    towns.put("agios", "1000").unwrap();
    towns.put("old/x", "").unwrap();
    each_write(&place.store, &cities).unwrap();
    batch(&place.store, &cities, &towns).unwrap();
    assert_eq!(towns.iter().count(), 0);
    let flushes = place.store.stats().device_flushes;
    place.store.drive(many(&cities)).unwrap();
    assert!(place.store.stats().device_flushes - flushes < 100);
    assert_eq!(cities.iter().count(), 103);
}
