//! What reads bytes that clients send, for tests from outside. No stable interface.

use bytes::BytesMut;

use crate::resp::{Parsed, Parser, RequestLimits};

/// Requests, as their arguments, until bytes that are none; with these what Redis says of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Requests {
    /// In the order of their coming.
    pub requests: Vec<Vec<Vec<u8>>>,
    /// The error that ended the reading.
    pub error: Option<String>,
    /// The largest buffer that was held.
    pub buffer_bytes: usize,
}

/// The requests of `pieces`, which come one after the other, with at most `args_max` arguments of `bulk_bytes_max` bytes.
pub fn requests<'a>(
    pieces: impl IntoIterator<Item = &'a [u8]>,
    (args_max, bulk_bytes_max): (usize, usize),
) -> Requests {
    let mut parser = Parser::new(RequestLimits {
        args_max,
        bulk_bytes_max,
        request_bytes_max: args_max.saturating_mul(bulk_bytes_max),
    });
    let (mut input, mut args, mut found) = (BytesMut::new(), Vec::new(), Requests::default());
    for piece in pieces {
        input.extend_from_slice(piece);
        found.buffer_bytes = found.buffer_bytes.max(input.capacity());
        loop {
            match parser.next(&mut input, &mut args) {
                Ok(Parsed::Request) => {
                    let request = args.drain(..).map(|arg| arg.to_vec());
                    found.requests.push(request.collect());
                }
                Ok(Parsed::Incomplete { .. }) => break,
                Err(violation) => {
                    found.error = Some(violation.to_string());
                    return found;
                }
            }
        }
    }
    found
}
