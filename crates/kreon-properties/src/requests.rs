//! What clients of Redis send.

use arbitrary::{Arbitrary, Unstructured};
use kreon_server::parsing::{Requests, requests as parse};

use crate::case::with;

const ARGS_MAX: usize = 8;
const BULK_BYTES_MAX: usize = 200;
const LIMITS: (usize, usize) = (ARGS_MAX, BULK_BYTES_MAX);

/// The same requests come out however the bytes are cut, within their limits and in little memory; and requests that are
/// written come back as they were.
pub fn requests(bytes: &[u8]) {
    with(bytes, |u| {
        let cut = usize::from(u8::arbitrary(u)?).max(1);
        let text = match u.arbitrary()? {
            Form::Any => u.bytes(u.len())?.to_vec(),
            Form::Pieces => pieces(u)?,
            Form::Written => return written(u),
        };
        let whole = parse([text.as_slice()], LIMITS);
        let cut = parse(text.chunks(cut), LIMITS);
        assert_eq!((&whole.requests, &whole.error), (&cut.requests, &cut.error));
        check(&cut, text.len());
        Ok(())
    });
}

#[derive(Arbitrary)]
enum Form {
    Any,
    Pieces,
    Written,
}

/// Parts that requests are made of, in any order.
fn pieces(u: &mut Unstructured<'_>) -> arbitrary::Result<Vec<u8>> {
    const PARTS: [&[u8]; 16] = [
        b"*1\r\n",
        b"*2\r\n",
        b"*-1\r\n",
        b"*0\r\n",
        b"*9\r\n",
        b"$0\r\n",
        b"$3\r\n",
        b"$201\r\n",
        b"$-1\r\n",
        b"abc\r\n",
        b"\r\n",
        b"GET a\r\n",
        b"\"",
        b"'",
        b"\\x41",
        b"\n",
    ];
    let mut text = Vec::new();
    while !u.is_empty() {
        text.extend_from_slice(u.choose(&PARTS)?);
    }
    Ok(text)
}

fn written(u: &mut Unstructured<'_>) -> arbitrary::Result<()> {
    let mut wanted: Vec<Vec<Vec<u8>>> = Vec::arbitrary(u)?;
    wanted.retain(|request| !request.is_empty());
    for request in &mut wanted {
        request.truncate(ARGS_MAX);
        for arg in request {
            arg.truncate(BULK_BYTES_MAX);
        }
    }
    let mut text = Vec::new();
    for request in &wanted {
        text.extend_from_slice(format!("*{}\r\n", request.len()).as_bytes());
        for arg in request {
            text.extend_from_slice(format!("${}\r\n", arg.len()).as_bytes());
            text.extend_from_slice(arg);
            text.extend_from_slice(b"\r\n");
        }
    }
    let found = parse(text.chunks(7), LIMITS);
    assert_eq!((found.error, found.requests), (None, wanted));
    Ok(())
}

fn check(found: &Requests, text_bytes: usize) {
    for request in &found.requests {
        assert!(!request.is_empty() && request.len() <= ARGS_MAX);
    }
    // Grown by doubling, whatever was announced.
    assert!(found.buffer_bytes <= 2 * text_bytes + 64, "{found:?}");
}
