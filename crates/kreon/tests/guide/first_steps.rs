//! First steps.

use crate::Place;

fn use_of_readme(path: &std::path::Path) -> kreon::Result<()> {
    let store = kreon::Store::options().memory_bytes(1 << 30).open(path)?;
    let cities = store.region("cities")?;
    cities.put("gr/chania", "53910")?;
    let value = cities.get("gr/chania")?;
    for pair in cities.prefix("gr/") {
        let (key, value) = pair?;
        println!("{key:?} {value:?}");
    }
    let mut batch = kreon::WriteBatch::new();
    batch.put(&cities, "gr/heraklion", "140730");
    batch.delete(&cities, "gr/chania");
    store.write(batch, kreon::Durability::Sync)?;
    store.close()?;
    assert_eq!(value.as_deref(), Some(b"53910".as_slice()));
    Ok(())
}

#[test]
fn the_program_of_the_readme_runs() {
    let folder = tempfile::tempdir().unwrap();
    use_of_readme(&folder.path().join("data.kreon")).unwrap();
}

fn keys_and_values(cities: &kreon::Region) -> kreon::Result<()> {
    // Numbers sort by value if their bytes are big endian.
    for year in [1991_u32, 2011] {
        let key = [b"heraklion/", &year.to_be_bytes()[..]].concat();
        cities.put(key, "counted")?;
    }
    let newest = cities.prefix("heraklion/").next_back().transpose()?;
    if let Some((key, _)) = newest {
        assert!(key.ends_with(&2011_u32.to_be_bytes()));
    }
    Ok(())
}

#[test]
fn numbers_in_keys_sort_by_value() {
    let place = Place::new();
    let cities = place.region(&[]);
    keys_and_values(&cities).unwrap();
    assert_eq!(cities.iter().count(), 2);
}

fn errors(cities: &kreon::Region) -> kreon::Result<()> {
    match cities.put("gr/chania", "53910") {
        Err(error) if error.kind() == kreon::ErrorKind::OutOfSpace => {
            // Nothing was changed. Reads and deletions go on.
            cities.delete_prefix("old/")?;
        }
        outcome => outcome?,
    }
    Ok(())
}

#[test]
fn an_error_is_known_by_its_kind() {
    let place = Place::new();
    let cities = place.region(&[]);
    errors(&cities).unwrap();
    assert!(cities.contains("gr/chania").unwrap());
}
