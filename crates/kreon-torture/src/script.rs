//! Scripts: what is done to a store, from a seed.

mod loads;

use kreon_base::Timestamp;
use kreon_engine::Durability;
use kreon_format::range_value;
use kreon_sim::Dice;

use crate::content::Digest;

/// One change of one key, or the deletion of a range of keys.
#[derive(Clone, Debug, Default)]
pub struct Change {
    /// Name of the region.
    pub region: String,
    /// The key.
    pub key: Vec<u8>,
    /// The value; `None` deletes.
    pub value: Option<Value>,
    /// Deletes all keys from `key` on, up to there.
    pub until: Option<Until>,
    /// How long the value lives.
    pub lifetime: Lifetime,
}

/// How long a value lives. No run waits for an expiry, so all of them take the same course whatever the time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Lifetime {
    /// Until the next write of its key.
    #[default]
    Unlimited,
    /// It has an expiry that no run reaches.
    Long,
    /// It has ended before it is written: a deletion for whoever reads.
    Over,
}

impl Lifetime {
    /// One in eight has an expiry, and one in sixteen has ended.
    pub fn of(dice: &mut Dice) -> Self {
        match dice.below(16) {
            0 => Self::Long,
            1 => Self::Over,
            _ => Self::Unlimited,
        }
    }

    /// When the value ends.
    pub fn expires(self) -> Option<Timestamp> {
        match self {
            Self::Unlimited => None,
            Self::Long => Some(Timestamp::MAX),
            Self::Over => Some(Timestamp::MIN),
        }
    }
}

/// Where the deletion of a range ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Until {
    /// Before this key.
    Before(Vec<u8>),
    /// Behind the last key.
    Last,
}

impl Change {
    /// Whether it deletes a range that `key` is in.
    pub fn erases(&self, key: &[u8]) -> bool {
        self.key.as_slice() <= key
            && match &self.until {
                Some(Until::Before(end)) => key < end.as_slice(),
                Some(Until::Last) => true,
                None => false,
            }
    }

    /// The value of its record; `None` deletes one key.
    pub fn value_bytes(&self) -> Option<Vec<u8>> {
        match &self.until {
            Some(Until::Before(end)) => Some(range_value(Some(end))),
            Some(Until::Last) => Some(range_value(None)),
            None => self.value.map(|value| value.bytes()),
        }
    }

    /// When its value ends.
    pub fn expires(&self) -> Option<Timestamp> {
        let lives = self.value.is_some() && self.until.is_none();
        self.lifetime.expires().filter(|_| lives)
    }

    /// What its key has afterwards, if `value` is that of its record; `None`: no value.
    pub fn digest(&self, value: Option<&[u8]>) -> Option<Digest> {
        value
            .filter(|_| self.lifetime != Lifetime::Over)
            .map(Digest::of)
    }
}

/// A value, from few words.
#[derive(Clone, Copy, Debug)]
pub struct Value {
    /// Length in bytes.
    pub len_bytes: usize,
    /// What its bytes follow from.
    pub seed: u64,
}

impl Value {
    /// Its bytes. Of every other value each word comes four times, so that it can be packed.
    pub fn bytes(&self) -> Vec<u8> {
        let mut dice = Dice::new(self.seed);
        let times = if self.seed.is_multiple_of(2) { 4 } else { 1 };
        let mut bytes = Vec::with_capacity(self.len_bytes + 8 * times);
        while bytes.len() < self.len_bytes {
            bytes.extend(dice.roll().to_le_bytes().repeat(times));
        }
        bytes.truncate(self.len_bytes);
        bytes
    }
}

/// A pair of a load.
#[derive(Clone, Debug)]
pub struct Handed {
    /// What is done before it is handed in: any step that leaves the store open and its regions as they are.
    pub before: Vec<Step>,
    /// Its key; above the one before.
    pub key: Vec<u8>,
    /// Its value.
    pub value: Value,
}

/// One call, or a few.
#[derive(Clone, Debug)]
pub enum Step {
    /// A put, a deletion or a batch.
    Write(Vec<Change>, Durability),
    /// A bulk load into a region: what is handed in, and before each pair what is done meanwhile.
    Ingest(String, Vec<Handed>),
    /// Makes a region.
    Create(String),
    /// Drops a region.
    Drop(String),
    /// Spills everything.
    Checkpoint,
    /// Makes everything durable.
    Sync,
    /// Hands everything to the device, without a flush.
    WriteOut,
    /// Takes an image of L0.
    Image,
    /// A round of garbage collection.
    Collect,
    /// Writes free segments ahead for the log.
    Prepare,
    /// Closes and opens again.
    Reopen,
    /// Kills the process and opens the store in another one.
    Kill,
    /// Reads everything.
    Read,
    /// Opens a snapshot, in place of the one before.
    Snapshot,
    /// Reads what the snapshot sees, and closes it.
    Release,
}

/// How long a script is and what it holds.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Steps.
    pub steps: usize,
    /// Values longer than a segment, at the most.
    pub giants_max: usize,
    /// Keys in each region.
    pub keys: u64,
    /// What comes often.
    pub taste: Taste,
    /// Whether the process is killed now and then.
    pub kills: bool,
}

/// What comes more often than in the usual mixture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taste {
    /// The usual mixture.
    Mixed,
    /// Values longer than a segment: the volume grows by groups, and log segments become free.
    Giants,
    /// Short values, most of them durable at once.
    Tiny,
    /// Closing, opening, checkpoints, regions.
    Restless,
    /// Batches, most of them over the ends of segments.
    Batches,
    /// Long keys and short values: leaves hold few entries, and regions get several levels.
    Levels,
    /// Few keys that are overwritten with long values: log segments with dead records, and collections of them.
    Churn,
}

impl Shape {
    /// The usual one.
    pub fn mixed(steps: usize) -> Self {
        Self {
            steps,
            giants_max: 1,
            keys: 60,
            taste: Taste::Mixed,
            kills: false,
        }
    }

    /// The shape that goes with `seed`.
    pub fn of(seed: u64, steps: usize) -> Self {
        let mixed = Self::mixed(steps);
        match seed % 8 {
            0 => Self {
                giants_max: 30,
                keys: 12,
                taste: Taste::Giants,
                ..mixed
            },
            1 => Self {
                giants_max: 0,
                keys: 400,
                taste: Taste::Tiny,
                ..mixed
            },
            2 => Self {
                taste: Taste::Restless,
                ..mixed
            },
            3 => Self {
                giants_max: 6,
                keys: 90,
                taste: Taste::Batches,
                ..mixed
            },
            4 => Self {
                giants_max: 0,
                keys: 90,
                taste: Taste::Levels,
                ..mixed
            },
            5 => Self {
                giants_max: 0,
                keys: 24,
                taste: Taste::Churn,
                ..mixed
            },
            _ => Self {
                giants_max: 1 + (seed % 3) as usize,
                ..mixed
            },
        }
    }
}

/// The script that belongs to `seed`, for a store that has the `regions` already.
pub fn script(seed: u64, shape: Shape, regions: &[String]) -> Vec<Step> {
    let mut author = Author {
        dice: Dice::new(seed ^ 0x5ca1_ab1e),
        shape,
        regions: regions.to_vec(),
        giants: 0,
    };
    let mut steps = Vec::new();
    while steps.len() < shape.steps {
        author.add(&mut steps);
    }
    steps
}

struct Author {
    dice: Dice,
    shape: Shape,
    regions: Vec<String>,
    giants: usize,
}

impl Author {
    /// Adds a step, or a load with what belongs to it.
    fn add(&mut self, steps: &mut Vec<Step>) {
        let is_load = !self.regions.is_empty() && self.dice.below(12) == 0;
        match is_load {
            true => self.load(steps),
            false => steps.push(self.step()),
        }
    }

    fn step(&mut self) -> Step {
        if self.regions.is_empty() {
            return self.create();
        }
        // What background work does every 100 ms: the log is full of blocks that were not flushed.
        if self.shape.kills && self.dice.below(5) == 0 {
            return Step::WriteOut;
        }
        match self.dice.below(24) {
            0 | 1 => return Step::Image,
            2 => return Step::Prepare,
            _ => {}
        }
        let seldom = if self.shape.taste == Taste::Churn {
            6
        } else {
            24
        };
        if self.dice.below(seldom) == 0 {
            return Step::Collect;
        }
        let taste = self.shape.taste;
        let roll = match self.dice.below(100) {
            15.. if taste == Taste::Restless && self.dice.below(3) == 0 => self.dice.below(15),
            27.. if matches!(taste, Taste::Batches | Taste::Levels) => 15,
            roll => roll,
        };
        match roll {
            0..=2 if self.regions.len() < 4 => self.create(),
            3 if self.regions.len() > 1 => {
                let index = self.dice.below(self.regions.len() as u64) as usize;
                Step::Drop(self.regions.remove(index))
            }
            4..=5 => Step::Checkpoint,
            6..=9 => Step::Sync,
            11 if self.shape.kills => Step::Kill,
            10..=11 => Step::Reopen,
            12..=13 => Step::Snapshot,
            14 => Step::Release,
            15..=26 => {
                let count = 2 + self.dice.below(7);
                let changes = (0..count).map(|_| self.change()).collect();
                Step::Write(changes, self.durability())
            }
            _ => Step::Write(vec![self.change()], self.durability()),
        }
    }

    fn create(&mut self) -> Step {
        let names = ["alpha", "beta", "gamma", "delta", "epsilon"];
        let free: Vec<_> = names
            .iter()
            .filter(|name| !self.regions.iter().any(|r| r == *name))
            .collect();
        let index = self.dice.below(free.len() as u64) as usize;
        let name = free.get(index).map_or("zeta", |name| name).to_owned();
        self.regions.push(name.clone().to_owned());
        Step::Create(name.to_owned())
    }

    fn durability(&mut self) -> Durability {
        let fifths = if self.shape.taste == Taste::Tiny {
            4
        } else {
            2
        };
        match self.dice.below(5) {
            fifth if fifth < fifths => Durability::Sync,
            _ => Durability::Buffered,
        }
    }

    fn change(&mut self) -> Change {
        let index = self.dice.below(self.regions.len() as u64) as usize;
        let mut region = self.regions.get(index).cloned().unwrap_or_default();
        let mut key = self.key();
        let value = (self.dice.below(6) != 0).then(|| self.value());
        if self.shape.kills && value.is_some_and(|value| value.len_bytes > 1 << 20) {
            // A store that stays small is read quickly; the log grows all the same.
            region = self.regions.first().cloned().unwrap_or_default();
            key = b"giant".to_vec();
        }
        let until = (value.is_none() && self.dice.below(3) == 0).then(|| self.until(&key));
        Change {
            region,
            key,
            value,
            until,
            lifetime: Lifetime::of(&mut self.dice),
        }
    }

    /// Most ranges have a few keys.
    fn until(&mut self, key: &[u8]) -> Until {
        match self.dice.below(12) {
            0 => Until::Last,
            1..=4 => Until::Before(self.key()),
            5 => Until::Before([key, &[0]].concat()),
            _ => {
                let number = self.dice.below(self.shape.keys);
                let few = 1 + self.dice.below(self.shape.keys / 8 + 1);
                Until::Before(format!("key-{:05}", number + few).into_bytes())
            }
        }
    }

    fn key(&mut self) -> Vec<u8> {
        let number = self.dice.below(self.shape.keys);
        let mut key = format!("key-{number:05}").into_bytes();
        match number % 23 {
            // Longer than what a node keeps of a key; two of them differ only behind that.
            7 => {
                key = vec![b'k'; 1500];
                key.extend_from_slice(&(number / 23 % 3).to_be_bytes());
            }
            11 => key.resize(300, b'x'),
            13 if number == 13 => key.clear(),
            _ if self.shape.taste == Taste::Levels => key.resize(600, b'y'),
            _ => {}
        }
        key
    }

    fn value(&mut self) -> Value {
        let dice = &mut self.dice;
        let roll = match self.shape.taste {
            Taste::Giants if dice.below(4) == 0 => 39,
            Taste::Tiny | Taste::Levels => dice.below(16),
            Taste::Batches => 10 + dice.below(30),
            Taste::Churn if dice.below(2) == 0 => {
                return Value {
                    len_bytes: 60_000 + dice.below(200_000) as usize,
                    seed: dice.roll(),
                };
            }
            _ => dice.below(40),
        };
        let len_bytes = match roll {
            0..=15 => dice.below(65),
            16..=27 => 900 + dice.below(300),
            28..=33 => 4000 + dice.below(200),
            34..=37 => 5000 + dice.below(30_000),
            38 => 100_000 + dice.below(300_000),
            _ if self.giants < self.shape.giants_max => {
                self.giants += 1;
                (2 << 20) + dice.below(300_000)
            }
            _ => 1 + dice.below(2000),
        };
        Value {
            len_bytes: len_bytes as usize,
            seed: self.dice.roll(),
        }
    }
}
