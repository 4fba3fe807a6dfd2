//! Requests: arrays of bulk strings, or lines of words.

use bytes::{Bytes, BytesMut};

use super::inline;

/// A line with a count or a length, and a request of one line, have at most so many bytes.
pub(super) const LINE_BYTES_MAX: usize = 64 << 10;

/// Arguments that memory is kept for between requests.
const PLACES_KEPT_MAX: usize = 1024;

/// What a request may be; checked before memory is taken for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RequestLimits {
    /// Arguments, the name of the command included.
    pub args_max: usize,
    /// Bytes of an argument.
    pub bulk_bytes_max: usize,
    /// Bytes of the whole request as it was sent.
    pub request_bytes_max: usize,
}

impl RequestLimits {
    /// For a client that did not give the password yet: enough for `AUTH` and `HELLO`.
    pub(crate) const UNAUTHENTICATED: Self = Self {
        args_max: 10,
        bulk_bytes_max: 16 << 10,
        request_bytes_max: 64 << 10,
    };
}

/// What stands in front of the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Parsed {
    /// A request, whose arguments were handed over.
    Request,
    /// Only a part of one. It will have at least so many bytes more.
    Incomplete {
        /// 1 and more.
        missing_bytes: usize,
    },
}

/// Bytes that are no request. The connection cannot go on: where the next one begins is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Violation {
    /// The count of arguments is no number, or too large.
    ArgsCount,
    /// The length of an argument is no number, or too large.
    BulkLength,
    /// The length of an argument begins with something else than `$`.
    ExpectedBulk(u8),
    /// No line end behind an argument.
    ExpectedLineEnd,
    /// A line that does not end.
    LongLine,
    /// A quote without its partner in a request of one line.
    Quotes,
    /// The request as a whole is too large.
    LongRequest,
    /// More arguments than a client without the password may send.
    UnauthenticatedArgs,
    /// A longer argument than a client without the password may send.
    UnauthenticatedBulk,
}

impl std::fmt::Display for Violation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Protocol error: ")?;
        f.write_str(match self {
            Self::ArgsCount => "invalid multibulk length",
            Self::BulkLength => "invalid bulk length",
            Self::ExpectedBulk(found) => {
                return write!(f, "expected '$', got '{}'", found.escape_ascii());
            }
            Self::ExpectedLineEnd => "expected a line end behind an argument",
            Self::LongLine => "too big inline request",
            Self::Quotes => "unbalanced quotes in request",
            Self::LongRequest => "too big request",
            Self::UnauthenticatedArgs => "unauthenticated multibulk length",
            Self::UnauthenticatedBulk => "unauthenticated bulk length",
        })
    }
}

/// The place of an argument: from the begin of its request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    start: usize,
    bytes: usize,
}

/// Parses requests out of a buffer that is filled piece by piece. No byte is looked at twice, but for those of an
/// unfinished line.
#[derive(Debug)]
pub(crate) struct Parser {
    limits: RequestLimits,
    /// Bytes of the request that are parsed.
    at: usize,
    /// Arguments that are still to come; none: the request has not begun.
    args_left: Option<usize>,
    /// Length of the argument at `at`, if its line was parsed.
    bulk_bytes: Option<usize>,
    /// Arguments so far.
    pub(super) places: Vec<Place>,
}

impl Parser {
    pub(crate) fn new(limits: RequestLimits) -> Self {
        Self {
            limits,
            at: 0,
            args_left: None,
            bulk_bytes: None,
            places: Vec::new(),
        }
    }

    /// Bytes that it holds beside the input.
    pub(crate) fn held_bytes(&self) -> usize {
        self.places.capacity() * size_of::<Place>()
    }

    /// From now on these hold.
    pub(crate) fn set_limits(&mut self, limits: RequestLimits) {
        self.limits = limits;
    }

    /// Takes the next request off `input`, its arguments into `args`, which is empty. They are slices of the input. Empty
    /// requests are passed over.
    ///
    /// # Errors
    /// What the client did wrong; the input is useless from then on.
    pub(crate) fn next(
        &mut self,
        input: &mut BytesMut,
        args: &mut Vec<Bytes>,
    ) -> Result<Parsed, Violation> {
        loop {
            if self.args_left.is_none() {
                match input.first() {
                    None => return Ok(Parsed::Incomplete { missing_bytes: 1 }),
                    Some(b'*') => {}
                    Some(_) => match self.inline(input, args)? {
                        // An empty line.
                        Parsed::Request if args.is_empty() => continue,
                        parsed => return Ok(parsed),
                    },
                }
            }
            match self.array(input)? {
                Parsed::Request if self.places.is_empty() => self.take(input, args),
                Parsed::Request => {
                    self.take(input, args);
                    return Ok(Parsed::Request);
                }
                incomplete => return Ok(incomplete),
            }
        }
    }

    /// Hands over what was parsed.
    fn take(&mut self, input: &mut BytesMut, args: &mut Vec<Bytes>) {
        let request = input.split_to(self.at.min(input.len())).freeze();
        let args_of = self.places.drain(..);
        args.extend(args_of.map(|place| request.slice(place.start..place.start + place.bytes)));
        self.places.shrink_to(PLACES_KEPT_MAX);
        self.at = 0;
        self.args_left = None;
    }

    fn array(&mut self, input: &[u8]) -> Result<Parsed, Violation> {
        let mut left = match self.args_left {
            Some(left) => left,
            None => {
                let Some((count, behind)) = number(input, 1, Violation::ArgsCount)? else {
                    return Ok(Parsed::Incomplete { missing_bytes: 1 });
                };
                self.at = behind;
                // A negative count is an empty request, as in Redis.
                self.checked_count(count.max(0))?
            }
        };
        while left > 0 {
            let parsed = self.argument(input)?;
            if let Parsed::Incomplete { .. } = parsed {
                self.args_left = Some(left);
                return Ok(parsed);
            }
            left -= 1;
        }
        Ok(Parsed::Request)
    }

    fn checked_count(&self, count: i64) -> Result<usize, Violation> {
        match usize::try_from(count) {
            Ok(count) if count <= self.limits.args_max => Ok(count),
            _ if self.limits == RequestLimits::UNAUTHENTICATED => {
                Err(Violation::UnauthenticatedArgs)
            }
            _ => Err(Violation::ArgsCount),
        }
    }

    /// One argument at `at`.
    fn argument(&mut self, input: &[u8]) -> Result<Parsed, Violation> {
        let bytes = match self.bulk_bytes {
            Some(bytes) => bytes,
            None => {
                match input.get(self.at) {
                    None => return Ok(Parsed::Incomplete { missing_bytes: 1 }),
                    Some(b'$') => {}
                    Some(other) => return Err(Violation::ExpectedBulk(*other)),
                }
                let line = number(input, self.at + 1, Violation::BulkLength)?;
                let Some((bytes, behind)) = line else {
                    return Ok(Parsed::Incomplete { missing_bytes: 1 });
                };
                let bytes = self.checked_length(bytes, behind)?;
                self.at = behind;
                self.bulk_bytes = Some(bytes);
                bytes
            }
        };
        let end = self.at + bytes + 2;
        if input.len() < end {
            let missing_bytes = end - input.len();
            return Ok(Parsed::Incomplete { missing_bytes });
        }
        if input.get(end - 2..end) != Some(b"\r\n") {
            return Err(Violation::ExpectedLineEnd);
        }
        self.places.push(Place {
            start: self.at,
            bytes,
        });
        self.at = end;
        self.bulk_bytes = None;
        Ok(Parsed::Request)
    }

    /// The length of an argument whose bytes begin at `at`.
    fn checked_length(&self, bytes: i64, at: usize) -> Result<usize, Violation> {
        match usize::try_from(bytes) {
            Ok(bytes) if bytes <= self.limits.bulk_bytes_max => {
                match at + bytes + 2 <= self.limits.request_bytes_max {
                    true => Ok(bytes),
                    false => Err(Violation::LongRequest),
                }
            }
            Ok(_) if self.limits == RequestLimits::UNAUTHENTICATED => {
                Err(Violation::UnauthenticatedBulk)
            }
            _ => Err(Violation::BulkLength),
        }
    }

    /// A request of one line.
    fn inline(&mut self, input: &mut BytesMut, args: &mut Vec<Bytes>) -> Result<Parsed, Violation> {
        // What was looked at before holds no line end.
        let unseen = input.get(self.at..).unwrap_or_default();
        let Some(end) = unseen.iter().position(|byte| *byte == b'\n') else {
            if input.len() > LINE_BYTES_MAX {
                return Err(Violation::LongLine);
            }
            self.at = input.len();
            return Ok(Parsed::Incomplete { missing_bytes: 1 });
        };
        let line = input.split_to(self.at + end + 1);
        self.at = 0;
        if line.len() > LINE_BYTES_MAX {
            return Err(Violation::LongLine);
        }
        let line = line.strip_suffix(b"\n").unwrap_or(&line);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        inline::words(line, args).map_err(|inline::Unbalanced| Violation::Quotes)?;
        match args.len() <= self.limits.args_max {
            true => Ok(Parsed::Request),
            false => Err(Violation::ArgsCount),
        }
    }
}

/// The number in the line at `at`, and where the next line begins. None: the line is unfinished. Zeroes in front are wrong, as in
/// Redis; so an unfinished number has an end, and what is wrong does not depend on how the bytes come.
fn number(input: &[u8], at: usize, wrong: Violation) -> Result<Option<(i64, usize)>, Violation> {
    let line = input.get(at..).unwrap_or_default();
    let (is_negative, digits_at) = match line.first() {
        Some(b'-') => (true, 1),
        _ => (false, 0),
    };
    let mut number: i64 = 0;
    for (place, byte) in line.iter().enumerate().skip(digits_at) {
        match byte {
            b'0'..=b'9' => {
                let digit = i64::from(byte - b'0');
                let is_first = place == digits_at;
                if number == 0 && (!is_first || is_negative && digit == 0) {
                    return Err(wrong);
                }
                let longer = number
                    .checked_mul(10)
                    .and_then(|ten| ten.checked_add(digit));
                number = longer.ok_or(wrong)?;
            }
            b'\r' if place > digits_at => {
                return match line.get(place + 1) {
                    None => Ok(None),
                    Some(b'\n') if is_negative => Ok(Some((-number, at + place + 2))),
                    Some(b'\n') => Ok(Some((number, at + place + 2))),
                    Some(_) => Err(wrong),
                };
            }
            _ => return Err(wrong),
        }
    }
    Ok(None)
}
