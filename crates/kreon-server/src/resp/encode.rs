//! Replies as bytes.

use crate::reply::{Reply, double_text};

/// The protocol's version, which a client chooses by `HELLO`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Version {
    /// Arrays, strings, numbers and errors only.
    #[default]
    Resp2,
    /// Maps, sets, doubles and pushes besides.
    Resp3,
}

impl Version {
    /// Its number, as in `HELLO 3`.
    pub(crate) fn number(self) -> i64 {
        match self {
            Self::Resp2 => 2,
            Self::Resp3 => 3,
        }
    }
}

/// Appends `reply` to `out`.
pub(crate) fn encode(reply: &Reply, version: Version, out: &mut Vec<u8>) {
    let is_3 = version == Version::Resp3;
    match reply {
        Reply::Ok => out.extend_from_slice(b"+OK\r\n"),
        Reply::Nil | Reply::NilArray if is_3 => out.extend_from_slice(b"_\r\n"),
        Reply::Nil => out.extend_from_slice(b"$-1\r\n"),
        Reply::NilArray => out.extend_from_slice(b"*-1\r\n"),
        Reply::Int(number) => push_line(out, b':', *number),
        Reply::Double(number) => double(*number, is_3, out),
        Reply::Simple(text) => push_text(out, b'+', text),
        Reply::Bulk(bytes) => push_bulk(out, bytes),
        Reply::Value { value, skip } => push_bulk(out, value.get(*skip..).unwrap_or_default()),
        Reply::Text(text) if is_3 => {
            push_line(out, b'=', text.len() as i64 + 4);
            out.extend_from_slice(b"txt:");
            out.extend_from_slice(text.as_bytes());
            out.extend_from_slice(b"\r\n");
        }
        Reply::Text(text) => push_bulk(out, text.as_bytes()),
        Reply::Error(error) => push_text(out, b'-', &error.0),
        Reply::Array(items) => aggregate(b'*', items, version, out),
        Reply::Set(items) => aggregate(if is_3 { b'~' } else { b'*' }, items, version, out),
        Reply::Push(items) => aggregate(if is_3 { b'>' } else { b'*' }, items, version, out),
        Reply::Pairs(pairs) => {
            match is_3 {
                true => push_line(out, b'*', pairs.len() as i64),
                false => push_line(out, b'*', pairs.len() as i64 * 2),
            }
            for (first, second) in pairs {
                if is_3 {
                    push_line(out, b'*', 2);
                }
                encode(first, version, out);
                encode(second, version, out);
            }
        }
        Reply::Map(pairs) => {
            match is_3 {
                true => push_line(out, b'%', pairs.len() as i64),
                false => push_line(out, b'*', pairs.len() as i64 * 2),
            }
            for (key, value) in pairs {
                encode(key, version, out);
                encode(value, version, out);
            }
        }
    }
}

fn aggregate(kind: u8, items: &[Reply], version: Version, out: &mut Vec<u8>) {
    push_line(out, kind, items.len() as i64);
    for item in items {
        encode(item, version, out);
    }
}

fn double(number: f64, is_3: bool, out: &mut Vec<u8>) {
    let text = double_text(number);
    match is_3 {
        true => push_text(out, b',', &text),
        false => push_bulk(out, text.as_bytes()),
    }
}

/// Appends a bulk string.
pub(crate) fn push_bulk(out: &mut Vec<u8>, bytes: &[u8]) {
    out.reserve(bytes.len() + 24);
    push_line(out, b'$', bytes.len() as i64);
    out.extend_from_slice(bytes);
    out.extend_from_slice(b"\r\n");
}

/// A line end within would be taken for the end of the reply.
fn push_text(out: &mut Vec<u8>, kind: u8, text: &str) {
    out.push(kind);
    let bytes = text.bytes();
    out.extend(bytes.map(|byte| {
        if matches!(byte, b'\r' | b'\n') {
            b' '
        } else {
            byte
        }
    }));
    out.extend_from_slice(b"\r\n");
}

/// Appends `kind`, a number and a line end.
pub(crate) fn push_line(out: &mut Vec<u8>, kind: u8, number: i64) {
    out.push(kind);
    match u8::try_from(number) {
        Ok(digit @ 0..=9) => out.push(b'0' + digit),
        _ => push_number(out, number),
    }
    out.extend_from_slice(b"\r\n");
}

fn push_number(out: &mut Vec<u8>, number: i64) {
    let mut digits = [0; 20];
    let (mut left, mut begin) = (number.unsigned_abs(), digits.len());
    for place in digits.iter_mut().rev() {
        *place = b'0' + (left % 10) as u8;
        left /= 10;
        begin -= 1;
        if left == 0 {
            break;
        }
    }
    if number < 0 {
        out.push(b'-');
    }
    out.extend_from_slice(digits.get(begin..).unwrap_or_default());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(reply: &Reply, version: Version) -> String {
        let mut out = Vec::new();
        encode(reply, version, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn replies_of_both_versions_are_those_of_the_protocol() {
        let item = || Reply::Int(1);
        let bulk = |text: &'static str| Reply::Bulk(text.into());
        for (reply, resp2, resp3) in [
            (Reply::Ok, "+OK\r\n", "+OK\r\n"),
            (Reply::Nil, "$-1\r\n", "_\r\n"),
            (Reply::NilArray, "*-1\r\n", "_\r\n"),
            (
                Reply::Int(i64::MIN),
                ":-9223372036854775808\r\n",
                ":-9223372036854775808\r\n",
            ),
            (Reply::Int(9), ":9\r\n", ":9\r\n"),
            (Reply::Int(10), ":10\r\n", ":10\r\n"),
            (Reply::Double(1.5), "$3\r\n1.5\r\n", ",1.5\r\n"),
            (Reply::Simple("PONG"), "+PONG\r\n", "+PONG\r\n"),
            (bulk("ab"), "$2\r\nab\r\n", "$2\r\nab\r\n"),
            (Reply::Text("ab".into()), "$2\r\nab\r\n", "=6\r\ntxt:ab\r\n"),
            (
                Reply::Array(vec![item(), Reply::Nil]),
                "*2\r\n:1\r\n$-1\r\n",
                "*2\r\n:1\r\n_\r\n",
            ),
            (
                Reply::Map(vec![(bulk("a"), item())]),
                "*2\r\n$1\r\na\r\n:1\r\n",
                "%1\r\n$1\r\na\r\n:1\r\n",
            ),
            (
                Reply::Pairs(vec![(bulk("a"), item())]),
                "*2\r\n$1\r\na\r\n:1\r\n",
                "*1\r\n*2\r\n$1\r\na\r\n:1\r\n",
            ),
            (Reply::Set(vec![item()]), "*1\r\n:1\r\n", "~1\r\n:1\r\n"),
            (Reply::Push(vec![item()]), "*1\r\n:1\r\n", ">1\r\n:1\r\n"),
        ] {
            assert_eq!(encoded(&reply, Version::Resp2), resp2, "{reply:?}");
            assert_eq!(encoded(&reply, Version::Resp3), resp3, "{reply:?}");
        }
    }

    #[test]
    fn a_value_is_sent_without_its_head() {
        let value = kreon::Value::from(b"?abc".to_vec());
        let reply = Reply::Value { value, skip: 1 };
        assert_eq!(encoded(&reply, Version::Resp2), "$3\r\nabc\r\n");
    }
}
