//! How the writer tells that an operation was acknowledged: a line of fixed length, written in one
//! system call, so that a kill cannot cut it.

/// Bytes of a line: well below what a pipe takes in one piece.
pub const ACK_BYTES: usize = 31;

/// An operation was acknowledged.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ack {
    pub thread: u8,
    pub sequence: u32,
    pub sync: bool,
    /// The number of a counted batch, 0 of any other operation.
    pub number: u64,
}

impl Ack {
    pub fn line(self) -> String {
        let durability = if self.sync { 'S' } else { 'B' };
        let Self {
            thread,
            sequence,
            number,
            ..
        } = self;
        format!("{thread:02x} {sequence:08x} {durability} {number:016x}\n")
    }

    pub fn of_line(line: &str) -> Option<Self> {
        let mut fields = line.trim_end().split(' ');
        let ack = Self {
            thread: u8::from_str_radix(fields.next()?, 16).ok()?,
            sequence: u32::from_str_radix(fields.next()?, 16).ok()?,
            sync: match fields.next()? {
                "S" => true,
                "B" => false,
                _ => return None,
            },
            number: u64::from_str_radix(fields.next()?, 16).ok()?,
        };
        fields.next().is_none().then_some(ack)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_one_length_and_read_back() {
        for sync in [false, true] {
            let ack = Ack {
                thread: 3,
                sequence: u32::MAX,
                sync,
                number: 77,
            };
            assert_eq!(ack.line().len(), ACK_BYTES);
            assert_eq!(Ack::of_line(&ack.line()), Some(ack));
        }
        assert_eq!(Ack::of_line("03 00000001 X 0\n"), None);
    }
}
