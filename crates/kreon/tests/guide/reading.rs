//! Reading.

use std::io::Read;

use kreon::{Region, Store};

use crate::Place;

fn gets(cities: &Region) -> kreon::Result<()> {
    let people = cities.get("chania")?; // a copy, `Option<Value>`
    let digits = cities.get_with("chania", |value| value.len())?; // no copy
    let mut buffer = Vec::new();
    let is_there = cities.get_into("chania", &mut buffer)?; // reuses the buffer
    assert_eq!((people.map(|value| value.len()), is_there), (digits, true));
    assert!(cities.contains("chania")?); // reads the index only
    Ok(())
}

fn many_at_once(cities: &Region) -> kreon::Result<()> {
    let values = cities.multi_get(&["chania", "atlantis", "pisa"])?;
    assert!(values[0].is_some() && values[1].is_none());
    Ok(())
}

async fn without_threads(cities: &Region) -> kreon::Result<()> {
    let chania = cities.get_async("chania").await?;
    assert!(chania.is_some());
    Ok(())
}

fn long_values(films: &Region) -> Result<(), Box<dyn std::error::Error>> {
    if let Some(mut film) = films.get_reader("film")? {
        let mut start = [0; 1024];
        film.read_exact(&mut start)?;
    }
    Ok(())
}

fn scans(cities: &Region) -> kreon::Result<()> {
    for pair in cities.range("a".."m") {
        let (key, value) = pair?;
        println!("{key:?} {value:?}");
    }
    let last = cities.prefix("p").next_back().transpose()?;
    assert!(last.is_some());
    let keys: Vec<_> = cities.iter().keys().collect::<kreon::Result<_>>()?; // reads no values
    let mut bytes = 0;
    let mut scan = cities.iter();
    while scan.next_with(|_, value| bytes += value.len())?.is_some() {} // copies nothing
    assert_eq!((keys.len(), bytes), (2, 10));
    Ok(())
}

fn cursor(cities: &Region) -> kreon::Result<()> {
    let mut scan = cities.iter();
    scan.seek("d"); // the first key that is not less, ahead or back
    if let Some((key, _)) = scan.peek()? {
        assert_eq!(key, b"pisa".as_slice()); // it stays the next one
    }
    scan.seek("a");
    assert_eq!(scan.next().transpose()?.unwrap().0, b"chania".as_slice());
    Ok(())
}

fn snapshots(store: &Store, cities: &Region) -> kreon::Result<()> {
    let snapshot = store.snapshot();
    cities.delete("chania")?;
    assert!(snapshot.get(cities, "chania")?.is_some());
    assert_eq!(snapshot.range(cities, ..).count(), 2);
    Ok(())
}

#[test]
fn reads_of_every_kind_find_what_is_there() {
    let place = Place::new();
    let cities = place.region(&[("chania", "53910"), ("pisa", "90488")]);
    gets(&cities).unwrap();
    many_at_once(&cities).unwrap();
    place.store.drive(without_threads(&cities)).unwrap();
    let films = place.store.region("films").unwrap();
    films.put("film", vec![7; 2000]).unwrap();
    long_values(&films).unwrap();
    scans(&cities).unwrap();
    cursor(&cities).unwrap();
    snapshots(&place.store, &cities).unwrap();
}
