//! What every coordinator keeps.

use kreon_coord::{Candidacy, Command, Mode, Node, Operation, Paths, Reply, Step, Version};

use crate::house::House;
use crate::seat::{Disturbed, Seat, children, get, set};

/// What must be so at any coordinator, below a path of its own.
type Promise = fn(&House, &str) -> Result<(), Disturbed>;

const PROMISES: [Promise; 6] = [
    one_of_two_swaps_wins,
    a_multi_is_done_whole_or_not_at_all,
    watches_are_told_once_and_of_what_they_watch,
    a_node_that_does_not_exist_is_watched_too,
    ephemeral_nodes_go_with_their_session,
    the_next_in_line_comes_into_office,
];

/// Tries again, elsewhere, what a machine that stood still has disturbed.
fn keep_all(house: &House) {
    for (number, promise) in PROMISES.iter().enumerate() {
        let tries = (0..5).any(|nth| promise(house, &format!("/p{number}-{nth}")).is_ok());
        assert!(
            tries,
            "promise {number}: a session without faults got no answers"
        );
    }
}

#[test]
fn the_coordinator_in_the_process_keeps_all_promises() {
    keep_all(&House::in_process());
}

#[test]
fn a_real_zookeeper_keeps_all_promises() {
    if let Some(house) = House::real() {
        keep_all(&house);
    }
}

fn make(path: &str, mode: Mode) -> Command {
    Command::Create(path.into(), [].into(), mode)
}

fn node(data: &str, version: u64) -> Reply {
    Reply::Node(Node {
        data: data.as_bytes().into(),
        version: Version(version),
    })
}

fn two(house: &House, root: &str) -> Result<(Seat, Seat), Disturbed> {
    let (mut one, two) = (house.seat(), house.seat());
    let made = one.sure(make(root, Mode::Persistent))?;
    assert_eq!(made, Reply::Created(root.into()));
    Ok((one, two))
}

fn one_of_two_swaps_wins(house: &House, root: &str) -> Result<(), Disturbed> {
    let (mut one, mut two) = two(house, root)?;
    let first = one.send(set(root, "1", 0));
    let second = two.send(set(root, "2", 0));
    let mut replies = [one.answer(first), two.answer(second)];
    if replies.contains(&Reply::Unknown) {
        return Err(Disturbed);
    }
    let winner = if replies[0] == Reply::Conflict {
        "2"
    } else {
        "1"
    };
    replies.sort_by_key(|reply| *reply == Reply::Conflict);
    assert_eq!(replies, [Reply::Written(Version(1)), Reply::Conflict]);
    for seat in [&mut one, &mut two] {
        assert_eq!(seat.see(root)?.map(Reply::Node), Some(node(winner, 1)));
    }
    for version in [3, u64::MAX] {
        assert_eq!(one.sure(set(root, "3", version))?, Reply::Conflict);
    }
    Ok(())
}

fn a_multi_is_done_whole_or_not_at_all(house: &House, root: &str) -> Result<(), Disturbed> {
    let (mut one, _two) = two(house, root)?;
    let fence = format!("{root}/fence");
    one.sure(make(&fence, Mode::Persistent))?;
    let multi = |version| {
        Command::Multi(vec![
            Operation::Set(root.into(), [7].into(), Version(0)),
            Operation::Create(format!("{root}/x"), [].into(), Mode::Ephemeral),
            Operation::Check(fence.clone(), Version(version)),
        ])
    };
    let refused = Reply::Refused(2, Box::new(Reply::Conflict));
    assert_eq!(one.sure(multi(1))?, refused);
    assert_eq!(one.sure(get(root, false))?, node("", 0));
    let created = Reply::Created(format!("{root}/x"));
    let done = Reply::Done(vec![Reply::Written(Version(1)), created, Reply::Synced]);
    assert_eq!(one.sure(multi(0))?, done);
    assert_eq!(
        one.sure(Command::Multi(Vec::new()))?,
        Reply::Done(Vec::new())
    );
    Ok(())
}

fn watches_are_told_once_and_of_what_they_watch(
    house: &House,
    root: &str,
) -> Result<(), Disturbed> {
    let (mut one, mut two) = two(house, root)?;
    // Set twice, told once.
    for _ in 0..2 {
        two.see(root)?;
        assert_eq!(two.sure(get(root, true))?, node("", 0));
    }
    let listed = two.sure(children(root, true))?;
    assert_eq!(listed, Reply::Children(Vec::new()));
    one.sure(set(root, "a", 0))?;
    assert_eq!(two.next_change()?, root);
    one.sure(set(root, "b", 1))?;
    // The children did not change, and the node is watched no more.
    two.no_change()?;
    let below = format!("{root}/b");
    one.sure(make(&below, Mode::Persistent))?;
    assert_eq!(two.next_change()?, root);
    two.sure(get(&below, true))?;
    one.sure(Command::Delete(below.clone(), Version(0)))?;
    assert_eq!(two.next_change()?, below);
    two.no_change()?;
    two.sure(children(root, true))?;
    one.sure(Command::Delete(root.into(), Version(2)))?;
    assert_eq!(two.next_change()?, root);
    two.sure(Command::Sync)?;
    assert_eq!(two.sure(children(root, true))?, Reply::Missing);
    one.sure(make(root, Mode::Persistent))?;
    one.sure(make(&below, Mode::Persistent))?;
    two.no_change()
}

fn a_node_that_does_not_exist_is_watched_too(house: &House, root: &str) -> Result<(), Disturbed> {
    let (mut one, mut two) = two(house, root)?;
    let path = format!("{root}/later");
    // Twice, and then the session is silent.
    for _ in 0..2 {
        assert_eq!(two.sure(get(&path, true))?, Reply::Missing);
    }
    one.sure(make(&path, Mode::Ephemeral))?;
    assert_eq!(two.next_change()?, path);
    Ok(())
}

fn ephemeral_nodes_go_with_their_session(house: &House, root: &str) -> Result<(), Disturbed> {
    let (mut one, mut two) = two(house, root)?;
    let path = format!("{root}/live");
    assert_eq!(
        one.sure(make(&path, Mode::Ephemeral))?,
        Reply::Created(path.clone())
    );
    let below = make(&format!("{path}/x"), Mode::Persistent);
    assert_eq!(one.sure(below)?, Reply::Childless);
    assert!(two.see(&path)?.is_some());
    two.sure(children(root, true))?;
    house.end(one);
    assert_eq!(two.next_change()?, root);
    assert!(two.see(&path)?.is_none());
    Ok(())
}

/// Asks for a candidate until it waits or is in office.
fn run(seat: &mut Seat, candidate: &mut Candidacy, mut step: Step) -> Result<Step, Disturbed> {
    while let Step::Ask(command) = step {
        step = candidate.on_reply(seat.sure(command)?);
    }
    Ok(step)
}

fn the_next_in_line_comes_into_office(house: &House, root: &str) -> Result<(), Disturbed> {
    let paths = Paths::new(&root[1..]);
    let mut one = house.seat();
    for path in paths.folders().into_iter().chain([paths.master_fence()]) {
        one.sure(make(&path, Mode::Persistent))?;
    }
    let mut line = Vec::new();
    for process in [5, 3, 4] {
        let mut seat = house.seat();
        let (mut candidate, step) = Candidacy::new(paths.clone(), process);
        let step = run(&mut seat, &mut candidate, step)?;
        let first = process == 5;
        let expected = if first {
            Step::InOffice(Version(1))
        } else {
            Step::Wait
        };
        assert_eq!(step, expected);
        line.push((seat, candidate));
    }
    let (mut first, _) = line.remove(0);
    let write = |version| {
        let path = format!("{}/by-{version}", paths.groups());
        Command::Multi(vec![
            Operation::Check(paths.master_fence(), Version(version)),
            Operation::Create(path, [].into(), Mode::Persistent),
        ])
    };
    assert!(matches!(first.sure(write(1))?, Reply::Done(_)));
    house.end(first);
    let (seat, candidate) = &mut line[0];
    let path = seat.next_change()?;
    let step = candidate.on_changed(&path).expect("it waits for this");
    assert_eq!(run(seat, candidate, step)?, Step::InOffice(Version(2)));
    // Who was in office before writes nothing any more.
    let refused = Reply::Refused(0, Box::new(Reply::Conflict));
    assert_eq!(one.sure(write(1))?, refused);
    // The last in the line slept.
    line[1].0.no_change()
}
