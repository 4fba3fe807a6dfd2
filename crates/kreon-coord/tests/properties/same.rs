//! The same commands have the same replies at any coordinator, as long as nothing fails.

use std::collections::BTreeMap;

use kreon_coord::{Command, Mode, Operation, Reply, Version};

use crate::house::House;
use crate::seat::{Disturbed, Seat, children, get};

/// Small numbers that look random.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) % end
    }
}

fn path(dice: &mut Dice, root: &str) -> String {
    match dice.below(6) {
        0 => root.to_owned(),
        1 | 2 => format!("{root}/a"),
        3 => format!("{root}/b"),
        4 => format!("{root}/a/c"),
        _ => format!("{root}/b/c"),
    }
}

fn mode(dice: &mut Dice) -> Mode {
    match dice.below(4) {
        0 => Mode::Ephemeral,
        1 => Mode::EphemeralSequential,
        _ => Mode::Persistent,
    }
}

fn operation(dice: &mut Dice, root: &str) -> Operation {
    let (path, version) = (path(dice, root), Version(dice.below(3)));
    match dice.below(5) {
        0 => Operation::Check(path, version),
        1 => Operation::Set(path, [dice.below(9) as u8].into(), version),
        2 => Operation::Delete(path, version),
        _ => Operation::Create(path, [].into(), mode(dice)),
    }
}

fn command(dice: &mut Dice, root: &str) -> Command {
    match dice.below(8) {
        0 => get(&path(dice, root), false),
        1 => children(&path(dice, root), false),
        2 => Command::Multi((0..dice.below(4)).map(|_| operation(dice, root)).collect()),
        3 => Command::Set(
            path(dice, root),
            [dice.below(9) as u8].into(),
            Version(dice.below(4)),
        ),
        4 => Command::Delete(path(dice, root), Version(dice.below(3))),
        _ => Command::Create(path(dice, root), [].into(), mode(dice)),
    }
}

/// Gives the numbers of sequential nodes anew, in the order in which they were seen: each coordinator has its own.
#[derive(Default)]
struct Numbers(BTreeMap<String, usize>);

impl Numbers {
    fn name(&mut self, name: &str) -> String {
        let at = name.len().saturating_sub(10);
        if !name.is_char_boundary(at) || !name[at..].bytes().all(|b| b.is_ascii_digit()) || at == 0
        {
            return name.to_owned();
        }
        let next = self.0.len();
        let number = *self
            .0
            .entry(name[name.rfind('/').map_or(0, |s| s + 1)..].to_owned())
            .or_insert(next);
        format!("{}#{number}", &name[..at])
    }

    fn reply(&mut self, reply: Reply) -> Reply {
        match reply {
            Reply::Created(path) => Reply::Created(self.name(&path)),
            Reply::Children(names) => {
                Reply::Children(names.iter().map(|name| self.name(name)).collect())
            }
            Reply::Done(parts) => {
                Reply::Done(parts.into_iter().map(|part| self.reply(part)).collect())
            }
            other => other,
        }
    }
}

/// The replies to a script of `seed`, with sessions that end on the way.
fn replies(house: &House, root: &str, seed: u64) -> Result<Vec<(Command, Reply)>, Disturbed> {
    let mut dice = Dice(seed);
    let mut numbers = Numbers::default();
    let mut seats: Vec<Seat> = (0..3).map(|_| house.seat()).collect();
    let mut replies = Vec::new();
    seats[0].sure(Command::Create(root.into(), [].into(), Mode::Persistent))?;
    for _ in 0..150 {
        let at = dice.below(3) as usize;
        if dice.below(25) == 0 {
            house.end(std::mem::replace(&mut seats[at], house.seat()));
            continue;
        }
        let command = command(&mut dice, root);
        seats[at].sure(Command::Sync)?;
        let reply = seats[at].sure(command.clone())?;
        replies.push((command, numbers.reply(reply)));
    }
    Ok(replies)
}

#[test]
fn the_same_commands_have_the_same_replies_in_the_process_and_at_a_zookeeper() {
    let in_process = House::in_process();
    let real = House::real();
    let mut kinds = BTreeMap::new();
    for seed in 1..=20 {
        let root = format!("/s{seed}");
        let expected = replies(&in_process, &root, seed).unwrap();
        for (_, reply) in &expected {
            let kind = format!("{reply:?}");
            let kind = kind.split(['(', ' ']).next().unwrap_or_default().to_owned();
            *kinds.entry(kind).or_insert(0) += 1;
        }
        let Some(real) = &real else { continue };
        // A try that a machine that stood still has disturbed has left nodes: another root of the same length.
        let found = ["s", "t", "u", "v"].into_iter().find_map(|letter| {
            let root = format!("/{letter}{seed}");
            let found = replies(real, &root, seed).ok()?;
            Some((root, found))
        });
        let (found_root, found) = found.expect("a session without faults got no answers");
        for (nth, (expected, found)) in expected.iter().zip(&found).enumerate() {
            let expected = format!("{expected:?}");
            let found = format!("{found:?}").replace(&found_root, &root);
            assert_eq!(expected, found, "seed {seed}, command {nth}");
        }
    }
    // Each kind of reply was compared.
    for kind in [
        "Node",
        "Children",
        "Created",
        "Written",
        "Deleted",
        "Done",
        "Missing",
        "Exists",
        "Conflict",
        "HasChildren",
        "Childless",
        "Refused",
    ] {
        assert!(kinds.contains_key(kind), "{kind} never came: {kinds:?}");
    }
}
