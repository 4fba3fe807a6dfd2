//! Requests however they come.

use bytes::BytesMut;

use super::request::*;

const LIMITS: RequestLimits = RequestLimits {
    args_max: 1 << 20,
    bulk_bytes_max: 512 << 20,
    request_bytes_max: 1 << 30,
};

type Requests = Vec<Vec<Vec<u8>>>;

/// Requests of `pieces`, which arrive one after the other.
fn parse_pieces<'a>(
    pieces: impl Iterator<Item = &'a [u8]>,
    limits: RequestLimits,
) -> Result<Requests, Violation> {
    let mut parser = Parser::new(limits);
    let (mut input, mut args, mut requests) = (BytesMut::new(), Vec::new(), Vec::new());
    for piece in pieces {
        input.extend_from_slice(piece);
        while parser.next(&mut input, &mut args)? == Parsed::Request {
            requests.push(args.drain(..).map(|arg| arg.to_vec()).collect());
        }
    }
    Ok(requests)
}

fn parse(text: &[u8]) -> Result<Requests, Violation> {
    parse_pieces([text].into_iter(), LIMITS)
}

fn words(requests: &[&[&str]]) -> Requests {
    let words = |request: &[&str]| {
        request
            .iter()
            .map(|word| word.as_bytes().to_vec())
            .collect()
    };
    requests.iter().map(|request| words(request)).collect()
}

#[test]
fn requests_are_the_same_however_they_are_cut() {
    let text = b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n*0\r\n\r\nPING \"a b\"\r\n*-1\r\n*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$0\r\n\r\nGET k\n";
    let whole = words(&[
        &["GET", "k"],
        &["PING", "a b"],
        &["SET", "k", ""],
        &["GET", "k"],
    ]);
    assert_eq!(parse(text).unwrap(), whole);
    for bytes in 1..text.len() {
        let pieces = parse_pieces(text.chunks(bytes), LIMITS);
        assert_eq!(pieces.unwrap(), whole, "pieces of {bytes}");
    }
}

#[test]
fn zeroes_in_front_of_a_length_are_refused_however_they_are_cut() {
    let text = format!("*1\r\n${}1\r\nk\r\n", "0".repeat(40));
    for bytes in 1..=text.len() {
        let error = parse_pieces(text.as_bytes().chunks(bytes), LIMITS).unwrap_err();
        assert_eq!(error, Violation::BulkLength, "pieces of {bytes}");
    }
}

#[test]
fn an_argument_holds_any_bytes() {
    let arg: Vec<u8> = (0..=255).collect();
    let mut text = b"*1\r\n$256\r\n".to_vec();
    text.extend_from_slice(&arg);
    text.extend_from_slice(b"\r\n");
    assert_eq!(parse(&text).unwrap(), [[arg]]);
}

#[test]
fn what_is_no_request_is_told_as_redis_tells_it() {
    for (text, told) in [
        ("*x\r\n", "invalid multibulk length"),
        ("*\r\n", "invalid multibulk length"),
        ("*99999999999999999999\r\n", "invalid multibulk length"),
        ("*1048577\r\n", "invalid multibulk length"),
        ("*1\r\n$-1\r\n", "invalid bulk length"),
        ("*1\r\n$536870913\r\n", "invalid bulk length"),
        ("*1\r\n$1x\r\n", "invalid bulk length"),
        ("*01\r\n$1\r\nk\r\n", "invalid multibulk length"),
        ("*-0\r\n", "invalid multibulk length"),
        ("*1\r\n$01\r\nk\r\n", "invalid bulk length"),
        ("*1\r\n+1\r\n", "expected '$', got '+'"),
        ("*1\r\n$1\r\nabc", "expected a line end behind an argument"),
        ("SET \"a\r\n", "unbalanced quotes in request"),
    ] {
        let error = parse(text.as_bytes()).unwrap_err().to_string();
        assert_eq!(error, format!("Protocol error: {told}"), "{text:?}");
    }
}

#[test]
fn a_number_or_a_line_that_never_ends_is_refused() {
    let zeroes = [b"*".as_slice(), &[b'0'; 64]].concat();
    assert_eq!(parse(&zeroes), Err(Violation::ArgsCount));
    assert_eq!(
        parse(&vec![b'a'; LINE_BYTES_MAX + 1]),
        Err(Violation::LongLine)
    );
    assert_eq!(parse(&vec![b'a'; LINE_BYTES_MAX]), Ok(vec![]));
}

#[test]
fn an_announcement_takes_no_memory() {
    let mut parser = Parser::new(LIMITS);
    let mut input = BytesMut::from(b"*1048576\r\n$536870912\r\nabc".as_slice());
    let capacity = input.capacity();
    let parsed = parser.next(&mut input, &mut Vec::new()).unwrap();
    let missing_bytes = (512 << 20) + 2 - 3;
    assert_eq!(parsed, Parsed::Incomplete { missing_bytes });
    assert_eq!((input.capacity(), parser.places.capacity()), (capacity, 0));
}

#[test]
fn a_request_of_many_arguments_is_bounded_as_a_whole() {
    let limits = RequestLimits {
        request_bytes_max: 30,
        ..LIMITS
    };
    let short = parse_pieces(
        [b"*2\r\n$3\r\nabc\r\n$3\r\nabc\r\n".as_slice()].into_iter(),
        limits,
    );
    assert_eq!(short.unwrap().len(), 1);
    let long = parse_pieces(
        [b"*2\r\n$9\r\nabcdefghi\r\n$9\r\n".as_slice()].into_iter(),
        limits,
    );
    assert_eq!(long, Err(Violation::LongRequest));
}

#[test]
fn memory_of_a_request_of_many_arguments_is_not_kept() {
    let mut parser = Parser::new(LIMITS);
    let mut input = BytesMut::from(&b"*100000\r\n"[..]);
    input.extend_from_slice(&b"$0\r\n\r\n".repeat(99_999));
    let parsed = parser.next(&mut input, &mut Vec::new()).unwrap();
    assert_eq!(parsed, Parsed::Incomplete { missing_bytes: 1 });
    assert!(parser.held_bytes() >= 99_999 * 16);
    input.extend_from_slice(b"$0\r\n\r\n");
    let parsed = parser.next(&mut input, &mut Vec::new()).unwrap();
    assert_eq!(parsed, Parsed::Request);
    assert!(parser.held_bytes() < 64 << 10, "{}", parser.held_bytes());
}

#[test]
fn who_gave_no_password_may_send_little() {
    let parse = |text: &[u8]| parse_pieces([text].into_iter(), RequestLimits::UNAUTHENTICATED);
    assert_eq!(parse(b"*11\r\n"), Err(Violation::UnauthenticatedArgs));
    assert_eq!(
        parse(b"*1\r\n$16385\r\n"),
        Err(Violation::UnauthenticatedBulk)
    );
    assert_eq!(parse(b"*2\r\n$4\r\nAUTH\r\n$1\r\np\r\n").unwrap().len(), 1);
}
