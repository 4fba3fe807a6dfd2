//! Opens a damaged store, reads everything in every way, verifies, and compares with what must be.

use std::collections::BTreeSet;
use std::ops::Bound;
use std::sync::Arc;

use kreon_base::{Error, ErrorKind};
use kreon_engine::{Engine, RegionState, VerifyReport};

use super::atlas::Atlas;
use super::build;
use super::expect::{Expected, Open, expected};
use super::fixture::Fixture;
use super::hurt::Hurt;
use super::part::{Kind, Part};
use crate::content::{Content, Digest, Pairs};

/// How a damaged store took it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing in use was hit; everything is right.
    Harmless,
    /// Everything is right: there is a second copy.
    Right,
    /// As after a crash: the last units, which nothing stands behind, are gone.
    Torn,
    /// `Corruption` at open.
    Refused,
    /// `Corruption` when what was hit is read, and verification finds it.
    Told,
    /// Nothing that is read was hit; verification finds it.
    Found,
}

impl Outcome {
    /// What to count it as.
    pub fn name(self) -> &'static str {
        match self {
            Self::Harmless => "nothing in use, harmless",
            Self::Right => "right, by another copy",
            Self::Torn => "as a torn tail",
            Self::Refused => "Corruption at open",
            Self::Told => "Corruption at read, found by verify",
            Self::Found => "found by verify only",
        }
    }
}

/// A store and what is known of it.
pub struct Case {
    /// The store.
    pub fixture: Fixture,
    /// Its bytes.
    pub atlas: Atlas,
}

impl Case {
    /// Does the damage and judges.
    ///
    /// # Errors
    /// What is wrong with the store's answer.
    pub fn judge(&self, hurt: &Hurt) -> Result<Outcome, String> {
        let (image, older) = (&self.fixture.image, &self.fixture.older);
        let expected = expected(&self.atlas, hurt, image, older);
        let device = build::device(hurt.apply(image, older), false);
        self.judge_reader(&expected, build::open_to_read(&device))
            .map_err(|what| format!("for reading only: {what}"))?;
        let Some(engine) = self.opened(&expected, build::open(&device))? else {
            return Ok(Outcome::Refused);
        };
        let content = self.content(&expected)?;
        let told = self.read(&engine, content, &expected)?;
        let report = engine
            .verify()
            .map_err(|error| format!("verify: {error}"))?;
        self.check_report(&report, &expected)?;
        let is_torn = expected.open != Open::Units(self.atlas.units);
        Ok(match () {
            () if is_torn => Outcome::Torn,
            () if told > 0 => Outcome::Told,
            () if !expected.named.is_empty() => Outcome::Found,
            () if expected.hit.is_empty() => Outcome::Harmless,
            () => Outcome::Right,
        })
    }

    /// The store, if it is open as it should be; `None` if it was refused as it should be.
    fn opened(
        &self,
        expected: &Expected,
        opened: kreon_base::Result<Engine>,
    ) -> Result<Option<Engine>, String> {
        match (opened, expected.open) {
            (Ok(engine), Open::Units(_)) => Ok(Some(engine)),
            (Ok(_), Open::Refused) => Err("the open notices nothing".to_owned()),
            (Err(error), Open::Refused) => self.is_good_refusal(&error, expected).map(|()| None),
            (Err(error), Open::Units(_)) => Err(format!("the open fails: {error}")),
        }
    }

    /// A store that is opened for reading only is refused where one for writing is, and shows the same.
    fn judge_reader(
        &self,
        expected: &Expected,
        opened: kreon_base::Result<Engine>,
    ) -> Result<(), String> {
        if let Some(engine) = self.opened(expected, opened)? {
            let content = self.content(expected)?;
            self.read(&engine, content, expected)?;
            engine.close().map_err(|error| format!("close: {error}"))?;
        }
        Ok(())
    }

    /// The right kind, and the words that lead to the place.
    fn is_good_refusal(&self, error: &Error, expected: &Expected) -> Result<(), String> {
        if error.kind() != ErrorKind::Corruption {
            return Err(format!("the open is refused with {error}"));
        }
        let text = error.to_string();
        let is_told = expected.hit.iter().any(|&index| {
            let part = &self.atlas.parts[index];
            match part.kind {
                Kind::Superblock => text.contains("superblock"),
                Kind::Bitmap | Kind::Catalogue => text.contains(&page_name(part)),
                Kind::TailHeader | Kind::TailRecord | Kind::TailPad => {
                    text.contains("the log is damaged at") && text.contains(&part.lsn.to_string())
                }
                Kind::Index(_) | Kind::Leaf | Kind::Record | Kind::Header => false,
            }
        });
        match is_told {
            true => Ok(()),
            false => Err(format!("the refusal does not say where: {text}")),
        }
    }

    /// What the store holds when so many units behind the marker are left.
    fn content(&self, expected: &Expected) -> Result<&Content, String> {
        let Open::Units(units) = expected.open else {
            return Err("no content of a refused open".to_owned());
        };
        let lost = self.atlas.units.checked_sub(units);
        let all = self.fixture.contents.len();
        lost.and_then(|lost| self.fixture.contents.get(all.checked_sub(1 + lost)?))
            .ok_or_else(|| format!("{} units, but {all} contents", self.atlas.units))
    }

    /// Reads everything; returns how many calls told of the damage.
    fn read(&self, engine: &Engine, content: &Content, expected: &Expected) -> Result<u64, String> {
        let names: Vec<_> = content.keys().cloned().collect();
        if engine.region_names() != names {
            return Err("the regions are not what they were".to_owned());
        }
        let mut told = 0;
        for (name, pairs) in content {
            let region = engine
                .existing_region(name)
                .map_err(|error| error.to_string())?;
            let reader = Reader {
                engine,
                region: &region,
                pairs,
                fate: self.fate(name, expected),
            };
            told += reader
                .read_all()
                .map_err(|what| format!("region {}: {what}", brief(name)))?;
        }
        Ok(told)
    }

    /// What the damage does to the keys of a region.
    fn fate(&self, region: &str, expected: &Expected) -> Fate {
        let mut fate = Fate::default();
        let reached = self.atlas.reached.get(region);
        for &index in reached.into_iter().flatten() {
            if expected.hit.contains(&index) {
                fate.is_touched = true;
                fate.is_cut |= self.atlas.parts[index].kind != Kind::Record;
            }
        }
        if !fate.is_touched {
            return fate;
        }
        let is_hit = |index: &usize| expected.hit.contains(index);
        for (of_region, beside) in self.atlas.beside.range((region.to_owned(), Vec::new())..) {
            let (name, key) = of_region;
            if name != region {
                break;
            }
            fate.is_entangled |= key.len() > kreon_format::LONG_KEY_STORED_BYTES;
            if beside.iter().any(is_hit) {
                fate.doubtful.insert(key.clone());
            }
            // What was written behind the marker is found in L0 first.
            let is_fresh = self.atlas.fresh.contains(of_region);
            let needs = self.atlas.needs.get(of_region);
            if !is_fresh && needs.into_iter().flatten().any(is_hit) {
                fate.lost.insert(key.clone());
            }
        }
        fate
    }

    /// Verification names what was hit, and nothing else.
    fn check_report(&self, report: &VerifyReport, expected: &Expected) -> Result<(), String> {
        for &index in &expected.named {
            let part = &self.atlas.parts[index];
            let name = match part.kind {
                Kind::Record => part.record.to_string(),
                _ => page_name(part),
            };
            if !report.problems.iter().any(|line| tells(line, &name)) {
                let kind = part.kind.name();
                return Err(format!(
                    "verify does not name the {kind} at {name}: {report:?}"
                ));
            }
        }
        match report.problems.first() {
            Some(first) if expected.named.is_empty() => {
                Err(format!("verify finds what is not there: {first}"))
            }
            _ => Ok(()),
        }
    }
}

/// How messages name the part's page.
pub fn page_name(part: &Part) -> String {
    part.page_no().to_string()
}

/// Whether `line` has `name` in it, not as the start of a longer number.
pub fn tells(line: &str, name: &str) -> bool {
    let mut ends = line.match_indices(name).map(|(at, _)| at + name.len());
    ends.any(|end| !line[end..].starts_with(|c: char| c.is_ascii_digit()))
}

/// What damage does to the keys of a region.
#[derive(Debug, Default)]
struct Fate {
    /// Keys that cannot be read.
    lost: BTreeSet<Vec<u8>>,
    /// Keys that perhaps cannot be read: one of their versions cannot.
    doubtful: BTreeSet<Vec<u8>>,
    /// Something that the region's trees reach was hit.
    is_touched: bool,
    /// A node was hit: a walk over the region cannot pass.
    is_cut: bool,
    /// There are keys that only their records tell apart: which of them a search reads depends on the
    /// order of its comparisons.
    is_entangled: bool,
}

struct Reader<'a> {
    engine: &'a Engine,
    region: &'a Arc<RegionState>,
    pairs: &'a Pairs,
    fate: Fate,
}

impl Reader<'_> {
    fn read_all(&self) -> Result<u64, String> {
        let told = self.gets()? + self.absent()? + self.multi_get()?;
        let forward = self
            .scan(false, true)
            .map_err(|what| format!("scan: {what}"))?;
        let backward = self
            .scan(true, true)
            .map_err(|what| format!("backward scan: {what}"))?;
        let count = self
            .scan(false, false)
            .map_err(|what| format!("count: {what}"))?;
        Ok(told + forward + backward + count)
    }

    /// Whether the failure of reading `key` is as it must be.
    fn excuse(&self, error: &Error, key: &[u8]) -> Result<u64, String> {
        let fate = &self.fate;
        let is_loose = fate.is_entangled || fate.is_cut && !self.pairs.contains_key(key);
        let is_allowed = fate.doubtful.contains(key) || fate.is_touched && is_loose;
        if error.kind() != ErrorKind::Corruption || !is_allowed {
            return Err(format!("get of {:?}: {error}", brief_key(key)));
        }
        match error.to_string().chars().any(|c| c.is_ascii_digit()) {
            true => Ok(1),
            false => Err(format!("an error that does not say where: {error}")),
        }
    }

    fn gets(&self) -> Result<u64, String> {
        let mut told = 0;
        for (key, value) in self.pairs {
            match self.engine.get(self.region, key, None, Digest::of) {
                Err(error) => told += self.excuse(&error, key)?,
                Ok(Some(got)) if got == *value && !self.fate.lost.contains(key) => {}
                Ok(got) => {
                    let key = brief_key(key);
                    return Err(format!(
                        "get of {key:?} says {got:?}, not {value:?} or Corruption"
                    ));
                }
            }
        }
        Ok(told)
    }

    /// Keys that are not there, beside some that are.
    fn absent(&self) -> Result<u64, String> {
        let mut told = 0;
        let lost = self
            .fate
            .lost
            .iter()
            .filter(|key| !self.pairs.contains_key(*key));
        let beside = self.pairs.keys().step_by(1 + self.pairs.len() / 8);
        let beside = beside.map(|key| [key.as_slice(), b"\0"].concat());
        for key in lost.cloned().chain(beside) {
            if self.pairs.contains_key(&key) {
                continue;
            }
            match self.engine.get(self.region, &key, None, Digest::of) {
                Ok(None) => {}
                Ok(Some(_)) => return Err(format!("{:?} has a value", brief_key(&key))),
                Err(error) => told += self.excuse(&error, &key)?,
            }
        }
        Ok(told)
    }

    fn multi_get(&self) -> Result<u64, String> {
        let keys: Vec<_> = self.pairs.keys().map(Vec::as_slice).collect();
        let expected: Vec<_> = self.pairs.values().collect();
        let (mut shown, mut wrong) = (0, 0);
        let outcome = self.engine.multi_get(self.region, &keys, |index, value| {
            shown += 1;
            wrong += usize::from(expected.get(index) != Some(&&Digest::of(&value)));
        });
        if wrong > 0 {
            return Err(format!("multi_get shows {wrong} wrong values"));
        }
        match outcome {
            Ok(()) if shown == keys.len() => Ok(0),
            Ok(()) => Err(format!("multi_get shows {shown} of {} values", keys.len())),
            Err(error) => self.excuse_walk("multi_get", &error),
        }
    }

    fn excuse_walk(&self, what: &str, error: &Error) -> Result<u64, String> {
        match error.kind() == ErrorKind::Corruption && self.fate.is_touched {
            true => Ok(1),
            false => Err(format!("{what}: {error}")),
        }
    }

    /// A walk over the region shows the first of its pairs up to an error, or all.
    fn scan(&self, backward: bool, with_values: bool) -> Result<u64, String> {
        let bounds = (Bound::Unbounded, Bound::Unbounded);
        let mut scan = self
            .engine
            .scan(self.region, self.engine.snapshot(), bounds);
        if !with_values {
            scan.without_values();
        }
        let mut keys: Box<dyn Iterator<Item = (&Vec<u8>, &Digest)>> = match backward {
            true => Box::new(self.pairs.iter().rev()),
            false => Box::new(self.pairs.iter()),
        };
        let nothing = Digest::of(&[]);
        loop {
            let next = keys.next();
            let show = |key: &[u8], value: &[u8]| {
                let digest = Digest::of(value);
                next.is_some_and(|(k, v)| {
                    k.as_slice() == key && digest == if with_values { *v } else { nothing }
                })
            };
            let shown = match backward {
                true => scan.next_back_with(show),
                false => scan.next_with(show),
            };
            match (shown, next) {
                (Ok(Some(true)), _) => {}
                (Ok(Some(false)), _) => return Err("a wrong pair".to_owned()),
                (Ok(None), None) => break,
                (Ok(None), Some((key, _))) => {
                    return Err(format!("it ends before {:?}", brief_key(key)));
                }
                (Err(error), _) => return self.excuse_walk("it fails", &error),
            }
        }
        let must_fail = self.fate.is_cut
            || with_values && self.pairs.keys().any(|k| self.fate.lost.contains(k));
        match must_fail {
            true => Err("it passes over the damage".to_owned()),
            false => Ok(0),
        }
    }
}

fn brief_key(key: &[u8]) -> String {
    let shown = key.get(..24).unwrap_or(key);
    format!("{}({} bytes)", shown.escape_ascii(), key.len())
}

fn brief(name: &str) -> &str {
    name.get(..20).unwrap_or(name)
}
