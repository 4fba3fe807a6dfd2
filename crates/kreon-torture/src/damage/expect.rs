//! What a store must say about damage, from the parts that it hit: the rules of the fault model.

use std::collections::BTreeSet;

use kreon_base::Lsn;

use super::atlas::Atlas;
use super::hurt::Hurt;
use super::part::Kind;
use kreon_sim::Image;

/// How an open must end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Open {
    /// With `Corruption`.
    Refused,
    /// Well; of the units behind the marker so many are left. All, unless the damage is what a crash
    /// leaves, too.
    Units(usize),
}

/// See the module's text.
#[derive(Debug)]
pub struct Expected {
    /// How an open ends.
    pub open: Open,
    /// Parts that were hit, by number in the atlas.
    pub hit: BTreeSet<usize>,
    /// Parts that a verification must name: those that it can reach.
    pub named: BTreeSet<usize>,
}

/// What a store must say.
pub fn expected(atlas: &Atlas, hurt: &Hurt, image: &Image, older: &Image) -> Expected {
    let mut hit = BTreeSet::new();
    for range in hurt.changed(image, older) {
        for index in atlas.touched(&range) {
            hit.insert(index);
        }
    }
    let is_hit = |index: &usize| hit.contains(index);
    let named = hit.iter().copied().filter(|&index| {
        let part = &atlas.parts[index];
        let is_read = matches!(
            part.kind,
            Kind::Index(_) | Kind::Leaf | Kind::Record | Kind::Header
        );
        is_read && !part.above.iter().any(is_hit)
    });
    Expected {
        named: named.collect(),
        open: open(atlas, &hit),
        hit,
    }
}

fn open(atlas: &Atlas, hit: &BTreeSet<usize>) -> Open {
    let parts = || hit.iter().map(|&index| &atlas.parts[index]);
    let slots = parts()
        .filter(|part| matches!(part.kind, Kind::Superblock))
        .count();
    let is_alone = |kind| matches!(kind, Kind::Bitmap | Kind::Catalogue);
    if slots == 4 || parts().any(|part| is_alone(part.kind)) {
        return Open::Refused;
    }
    let is_tail = |kind| matches!(kind, Kind::TailHeader | Kind::TailRecord | Kind::TailPad);
    let Some(first) = parts()
        .filter(|part| is_tail(part.kind))
        .min_by_key(|part| part.lsn)
    else {
        return Open::Units(atlas.units);
    };
    // Whatever else stands in the log tells what was durable.
    let whole = (0..)
        .zip(&atlas.parts)
        .filter(|(index, part)| is_tail(part.kind) && !hit.contains(index));
    let durable = whole.map(|(_, part)| part.claims).max().unwrap_or(Lsn(0));
    match first.lsn < durable.max(atlas.durable) {
        true => Open::Refused,
        false => Open::Units(first.units_before),
    }
}
