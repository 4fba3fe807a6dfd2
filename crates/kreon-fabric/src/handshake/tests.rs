use kreon_wire::{Member, ProcessId, Reason, Role, ServerId, Violation};

use super::*;
use crate::peer::PeerId;
use kreon_wire::limits::HEADER_BYTES;

fn member(server: u32) -> Member {
    Member {
        server: ServerId(server),
        process: ProcessId([server as u8; 16]),
    }
}

fn peer(server: u32) -> PeerId {
    PeerId {
        member: member(server),
        role: Role::PeerStream,
    }
}

fn with_key(key: &[u8]) -> Credentials {
    Credentials {
        cluster: "prod".into(),
        key: Some(Key::new(key).unwrap()),
    }
}

const KEY: &[u8] = b"0123456789abcdef";

fn connector(number: u32, credentials: &Credentials, challenge: u8) -> (Connector, Vec<u8>) {
    Connector::new(peer(number), credentials, [challenge; 32]).unwrap()
}

fn acceptor(credentials: &Credentials, challenge: u8) -> Acceptor {
    Acceptor::new(member(2), credentials, [challenge; 32]).unwrap()
}

fn sent(answer: Result<Answer, Failure>) -> Vec<u8> {
    match answer.unwrap() {
        Answer::Send(packet) | Answer::Judge(_, packet) => packet,
    }
}

fn proof(next: Result<Next, Failure>) -> Vec<u8> {
    match next.unwrap() {
        Next::Send(packet) => packet,
        Next::Linked(_) => panic!("too early"),
    }
}

/// The failure of an acceptor with these credentials, or of the connector.
fn meet(mine: &Credentials, theirs: &Credentials) -> Result<PeerId, Failure> {
    let (mut connector, hello) = connector(1, mine, 1);
    let mut acceptor = acceptor(theirs, 2);
    let Answer::Send(hello) = acceptor.take(&hello)? else {
        panic!("judged without a proof");
    };
    let Next::Send(proof) = connector.take(&hello)? else {
        panic!("linked without a proof");
    };
    let Answer::Judge(judged, last) = acceptor.take(&proof)? else {
        panic!("a third question");
    };
    assert_eq!(judged, peer(1));
    match connector.take(&last)? {
        Next::Linked(peer) => Ok(peer),
        Next::Send(_) => panic!("a third answer"),
    }
}

#[test]
fn two_with_one_key_know_each_other() {
    assert_eq!(meet(&with_key(KEY), &with_key(KEY)), Ok(peer(2)));
    let none = Credentials {
        cluster: "prod".into(),
        key: None,
    };
    assert_eq!(meet(&none, &none), Ok(peer(2)));
    let not_proven = Err(Failure::Refuse(Reason::NotProven));
    assert_eq!(meet(&none, &with_key(KEY)), not_proven);
    assert_eq!(meet(&with_key(KEY), &none), not_proven);
}

#[test]
fn another_key_or_cluster_is_refused() {
    let other = with_key(b"0123456789abcdeg");
    let not_proven = Err(Failure::Refuse(Reason::NotProven));
    assert_eq!(meet(&other, &with_key(KEY)), not_proven);
    let elsewhere = Credentials {
        cluster: "test".into(),
        ..with_key(KEY)
    };
    let other_cluster = Err(Failure::Refuse(Reason::OtherCluster));
    assert_eq!(meet(&elsewhere, &with_key(KEY)), other_cluster);
}

#[test]
fn a_server_that_does_not_have_the_key_is_not_believed() {
    let (mut connector, _) = connector(1, &with_key(KEY), 1);
    let theirs = with_key(b"another key, long");
    let mut impostor = acceptor(&theirs, 2);
    let (_, hello) = Connector::new(peer(1), &theirs, [1; 32]).unwrap();
    let asked = proof(connector.take(&sent(impostor.take(&hello))));
    assert!(impostor.take(&asked).is_err());
    let guess = Proof { code: [7; 32] }.encode().to_vec();
    let failure = connector.take(&guess).err();
    assert_eq!(failure, Some(Failure::Refuse(Reason::NotProven)));
}

#[test]
fn a_proof_is_of_no_use_on_another_link() {
    let credentials = with_key(KEY);
    let (mut honest, hello) = connector(1, &credentials, 1);
    let mut first = acceptor(&credentials, 2);
    let recorded = proof(honest.take(&sent(first.take(&hello))));
    assert!(first.take(&recorded).is_ok());
    // The same packets again, to one that asks anew.
    let mut second = acceptor(&credentials, 3);
    sent(second.take(&hello));
    let failure = second.take(&recorded).err();
    assert_eq!(failure, Some(Failure::Refuse(Reason::NotProven)));
}

#[test]
fn a_proof_of_one_process_or_role_is_none_of_another() {
    let credentials = with_key(KEY);
    let (mut honest, hello) = connector(1, &credentials, 1);
    let recorded = proof(honest.take(&sent(acceptor(&credentials, 2).take(&hello))));
    let others = [
        peer(3),
        PeerId {
            role: Role::PeerControl,
            ..peer(1)
        },
    ];
    for other in others {
        let (_, hello) = Connector::new(other, &credentials, [1; 32]).unwrap();
        let mut second = acceptor(&credentials, 2);
        sent(second.take(&hello));
        let failure = second.take(&recorded).err();
        assert_eq!(failure, Some(Failure::Refuse(Reason::NotProven)));
    }
}

#[test]
fn an_echo_proves_nothing() {
    let credentials = with_key(KEY);
    // The connector's own challenge comes back.
    let (mut first, hello) = connector(1, &credentials, 1);
    let failure = first.take(&hello).err();
    assert_eq!(failure, Some(Failure::Refuse(Reason::NotProven)));
    // Its own proof comes back.
    let (mut first, hello) = connector(1, &credentials, 1);
    let mine = proof(first.take(&sent(acceptor(&credentials, 2).take(&hello))));
    let failure = first.take(&mine).err();
    assert_eq!(failure, Some(Failure::Refuse(Reason::NotProven)));
    // An acceptor's challenge comes back as that of another link to it.
    let mut asked = acceptor(&credentials, 2);
    let (_, same) = connector(1, &credentials, 2);
    let failure = asked.take(&same).err();
    assert_eq!(failure, Some(Failure::Refuse(Reason::NotProven)));
    // Led through a stranger to itself.
    let (_, hello) = connector(2, &credentials, 1);
    let failure = acceptor(&credentials, 3).take(&hello).err();
    assert_eq!(failure, Some(Failure::Refuse(Reason::NotProven)));
}

#[test]
fn packets_out_of_turn_are_violations() {
    let credentials = with_key(KEY);
    let (mut first, hello) = connector(1, &credentials, 1);
    let answer = sent(acceptor(&credentials, 2).take(&hello));
    let early = proof(first.take(&answer));
    let out_of_turn = Some(Failure::Violation(Violation::KindForState));
    assert_eq!(acceptor(&credentials, 2).take(&early).err(), out_of_turn);
    assert_eq!(first.take(&answer).err(), out_of_turn);
    let mut asked = acceptor(&credentials, 2);
    sent(asked.take(&hello));
    assert_eq!(asked.take(&refuse(Reason::Busy)).err(), out_of_turn);
    let mut damaged = hello.clone();
    damaged[HEADER_BYTES + 30] ^= 1;
    let checksum = Some(Failure::Violation(Violation::Checksum));
    assert_eq!(acceptor(&credentials, 2).take(&damaged).err(), checksum);
}

#[test]
fn a_refusal_has_its_reason() {
    let (mut first, _) = connector(1, &with_key(KEY), 1);
    let refused = Some(Failure::Refused(Reason::Closing));
    assert_eq!(first.take(&refuse(Reason::Closing)).err(), refused);
}

#[test]
fn a_key_has_a_length_and_is_not_shown() {
    assert!(Key::new(&[0; 15]).is_err());
    assert!(Key::new(&[0; 1025]).is_err());
    assert_eq!(format!("{:?}", Key::new(KEY).unwrap()), "Key");
}
