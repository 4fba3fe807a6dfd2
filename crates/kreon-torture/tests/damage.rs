//! Damage: a bounded part of the sweep, and that it can fail.

use kreon_sim::Image;
use kreon_torture::damage::hurt::{Edit, Hurt};
use kreon_torture::damage::judge::{Case, Outcome};
use kreon_torture::damage::part::{Kind, Part};
use kreon_torture::damage::run::case;
use kreon_torture::{Extent, damage};

fn parts(case: &Case, kind: Kind) -> Vec<&Part> {
    let parts = case.atlas.parts.iter();
    parts.filter(|part| part.kind == kind).collect()
}

#[test]
fn damage_anywhere_is_told_or_does_no_harm() {
    let extent = Extent {
        stride: 400,
        ..Extent::default()
    };
    let counts = damage(extent);
    assert_eq!(counts.failed, 0, "{counts}");
    assert!(counts.tried.len() >= 25, "{counts}");
}

#[test]
fn the_fixtures_hold_every_structure() {
    let all: Vec<_> = ["trees", "tail", "groups"]
        .map(|name| case(name).unwrap())
        .into_iter()
        .collect();
    let count = |kind| {
        all.iter()
            .map(|case| parts(case, kind).len())
            .sum::<usize>()
    };
    for (kind, least) in [
        (Kind::Superblock, 12),
        (Kind::Bitmap, 4),
        (Kind::Catalogue, 4),
        (Kind::Index(1), 5),
        (Kind::Index(2), 2),
        (Kind::Index(3), 1),
        (Kind::Leaf, 40),
        (Kind::Record, 100),
        (Kind::Header, 1),
        (Kind::TailHeader, 4),
        (Kind::TailRecord, 40),
        (Kind::TailPad, 10),
    ] {
        assert!(count(kind) >= least, "{kind:?}: {}", count(kind));
    }
}

#[test]
fn a_judge_that_expects_too_little_is_found_out() {
    // An atlas that knows nothing calls all damage harmless: the store's answers contradict it.
    let mut blind = case("tail").unwrap();
    let victims: Vec<_> = [Kind::Catalogue, Kind::Leaf, Kind::TailRecord]
        .map(|kind| parts(&blind, kind)[0].range.start)
        .into_iter()
        .collect();
    for victim in &victims {
        let hurt = Hurt::one(Edit::Flip(victim + 7, 4));
        assert!(blind.judge(&hurt).is_ok());
    }
    blind.atlas.parts.clear();
    blind.atlas.needs.clear();
    blind.atlas.beside.clear();
    blind.atlas.reached.clear();
    for victim in victims {
        let hurt = Hurt::one(Edit::Flip(victim + 7, 4));
        assert!(blind.judge(&hurt).is_err());
    }
    // And one that expects too much.
    let mut seeing = case("tail").unwrap();
    seeing.fixture.older = Image::default();
    let free = seeing
        .atlas
        .parts
        .iter()
        .map(|part| part.range.end)
        .max()
        .unwrap();
    let nothing = Part::of(Kind::Leaf, free + (1 << 20)..free + (1 << 20) + 4096);
    let hurt = Hurt::one(Edit::Flip(nothing.range.start, 1));
    assert_eq!(seeing.judge(&hurt), Ok(Outcome::Harmless));
    seeing.atlas.parts.push(nothing);
    assert!(seeing.judge(&hurt).is_err());
}

#[test]
fn a_damaged_header_of_a_segment_unknown_to_the_catalogue_refuses_the_open() {
    let case = case("chain").unwrap();
    let headers = parts(&case, Kind::TailHeader);
    assert!(headers.len() >= 4, "{headers:?}");
    // The last unit stands behind the last header, so every header is needed.
    for header in headers {
        let hurt = Hurt::one(Edit::Flip(header.range.start + 20, 1));
        assert_eq!(case.judge(&hurt), Ok(Outcome::Refused), "{header:?}");
        let hurt = Hurt::one(Edit::Zero(header.range.start, 4096));
        assert_eq!(case.judge(&hurt), Ok(Outcome::Refused), "{header:?}");
    }
}

#[test]
fn a_store_whose_superblock_slots_were_wiped_is_not_made_anew() {
    let case = case("trees").unwrap();
    let slots = parts(&case, Kind::Superblock);
    let wiped = slots.iter().map(|slot| Edit::Zero(slot.range.start, 4096));
    let mut hurt = Hurt(wiped.collect());
    assert_eq!(case.judge(&hurt), Ok(Outcome::Refused));
    // Three blank slots and a torn one are what a making cut short leaves.
    hurt.0[2] = Edit::Flip(slots[2].range.start + 30, 1);
    assert_eq!(case.judge(&hurt), Ok(Outcome::Refused));
}
