//! Commands to the coordinator, and what it tells, as bytes.

use std::io::{Error, ErrorKind, Read, Result, Write};
use std::sync::Arc;

use kreon_coord::{CallId, Command, Event, Mode, Node, Operation, Reply, Version};

/// Writes a frame: its length, its bytes.
pub fn send(to: &mut impl Write, bytes: &[u8]) -> Result<()> {
    let mut frame = (bytes.len() as u32).to_le_bytes().to_vec();
    frame.extend_from_slice(bytes);
    to.write_all(&frame)
}

/// Reads one.
pub fn receive(from: &mut impl Read) -> Result<Vec<u8>> {
    let mut length = [0; 4];
    from.read_exact(&mut length)?;
    let length = u32::from_le_bytes(length) as usize;
    if length > 4 << 20 {
        return Err(wrong());
    }
    let mut bytes = vec![0; length];
    from.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn wrong() -> Error {
    Error::new(ErrorKind::InvalidData, "not what a coordinator says")
}

/// Bytes that are put together.
#[derive(Default)]
pub struct Put(pub Vec<u8>);

impl Put {
    pub fn u8(&mut self, value: u8) -> &mut Self {
        self.0.push(value);
        self
    }

    pub fn u64(&mut self, value: u64) -> &mut Self {
        self.0.extend_from_slice(&value.to_le_bytes());
        self
    }

    pub fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.u64(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
        self
    }

    fn command(&mut self, command: &Command) {
        match command {
            Command::Sync => _ = self.u8(0),
            Command::Get { path, watch } => {
                _ = self.u8(1).bytes(path.as_bytes()).u8((*watch).into());
            }
            Command::Children { path, watch } => {
                _ = self.u8(2).bytes(path.as_bytes()).u8((*watch).into());
            }
            Command::Create(path, data, mode) => {
                self.u8(3);
                self.operation(&Operation::Create(path.clone(), data.clone(), *mode));
            }
            Command::Set(path, data, version) => {
                self.u8(3);
                self.operation(&Operation::Set(path.clone(), data.clone(), *version));
            }
            Command::Delete(path, version) => {
                self.u8(3);
                self.operation(&Operation::Delete(path.clone(), *version));
            }
            Command::Multi(operations) => {
                self.u8(4).u64(operations.len() as u64);
                operations.iter().for_each(|part| self.operation(part));
            }
        }
    }

    fn operation(&mut self, operation: &Operation) {
        match operation {
            Operation::Check(path, version) => {
                _ = self.u8(0).bytes(path.as_bytes()).u64(version.0);
            }
            Operation::Set(path, data, version) => {
                _ = self.u8(1).bytes(path.as_bytes()).bytes(data).u64(version.0);
            }
            Operation::Create(path, data, mode) => {
                _ = self
                    .u8(2)
                    .bytes(path.as_bytes())
                    .bytes(data)
                    .u8(match mode {
                        Mode::Persistent => 0,
                        Mode::Ephemeral => 1,
                        Mode::EphemeralSequential => 2,
                    });
            }
            Operation::Delete(path, version) => {
                _ = self.u8(3).bytes(path.as_bytes()).u64(version.0);
            }
        }
    }

    fn reply(&mut self, reply: &Reply) {
        match reply {
            Reply::Synced => _ = self.u8(0),
            Reply::Node(node) => _ = self.u8(1).bytes(&node.data).u64(node.version.0),
            Reply::Children(names) => {
                self.u8(2).u64(names.len() as u64);
                names
                    .iter()
                    .for_each(|name| _ = self.bytes(name.as_bytes()));
            }
            Reply::Created(path) => _ = self.u8(3).bytes(path.as_bytes()),
            Reply::Written(version) => _ = self.u8(4).u64(version.0),
            Reply::Deleted => _ = self.u8(5),
            Reply::Done(parts) => {
                self.u8(6).u64(parts.len() as u64);
                parts.iter().for_each(|part| self.reply(part));
            }
            Reply::Missing => _ = self.u8(7),
            Reply::Exists => _ = self.u8(8),
            Reply::Conflict => _ = self.u8(9),
            Reply::Refused(part, why) => {
                self.u8(10).u64(*part as u64);
                self.reply(why);
            }
            Reply::Expired => _ = self.u8(11),
            Reply::Unknown => _ = self.u8(12),
            Reply::HasChildren => _ = self.u8(13),
            Reply::Childless => _ = self.u8(14),
        }
    }
}

/// A command with its number.
pub fn command_bytes(call: CallId, command: &Command) -> Vec<u8> {
    let mut put = Put::default();
    put.u64(call.0).command(command);
    put.0
}

/// What a session is told.
pub fn event_bytes(event: &Event) -> Vec<u8> {
    let mut put = Put::default();
    match event {
        Event::Replied(call, reply) => put.u8(0).u64(call.0).reply(reply),
        Event::Changed(path) => _ = put.u8(1).bytes(path.as_bytes()),
        Event::Expired => _ = put.u8(2),
    }
    put.0
}

/// Bytes that are taken apart.
pub struct Take<'a>(pub &'a [u8]);

impl<'a> Take<'a> {
    pub fn u8(&mut self) -> Result<u8> {
        let (first, rest) = self.0.split_first().ok_or_else(wrong)?;
        self.0 = rest;
        Ok(*first)
    }

    pub fn u64(&mut self) -> Result<u64> {
        let (first, rest) = self.0.split_first_chunk().ok_or_else(wrong)?;
        self.0 = rest;
        Ok(u64::from_le_bytes(*first))
    }

    pub fn bytes(&mut self) -> Result<&'a [u8]> {
        let length = self.u64()?;
        let length = usize::try_from(length).map_err(|_| wrong())?;
        let (first, rest) = self.0.split_at_checked(length).ok_or_else(wrong)?;
        self.0 = rest;
        Ok(first)
    }

    fn text(&mut self) -> Result<String> {
        String::from_utf8(self.bytes()?.to_vec()).map_err(|_| wrong())
    }

    fn data(&mut self) -> Result<Arc<[u8]>> {
        Ok(self.bytes()?.into())
    }

    fn version(&mut self) -> Result<Version> {
        self.u64().map(Version)
    }

    fn many<T>(&mut self, one: impl Fn(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        let count = self.u64()?;
        (0..count).map(|_| one(self)).collect()
    }

    /// A command with its number.
    pub fn command(&mut self) -> Result<(CallId, Command)> {
        let call = CallId(self.u64()?);
        let command = match self.u8()? {
            0 => Command::Sync,
            1 => Command::Get {
                path: self.text()?,
                watch: self.u8()? != 0,
            },
            2 => Command::Children {
                path: self.text()?,
                watch: self.u8()? != 0,
            },
            3 => match self.operation()? {
                Operation::Create(path, data, mode) => Command::Create(path, data, mode),
                Operation::Set(path, data, version) => Command::Set(path, data, version),
                Operation::Delete(path, version) => Command::Delete(path, version),
                Operation::Check(..) => return Err(wrong()),
            },
            4 => Command::Multi(self.many(Self::operation)?),
            _ => return Err(wrong()),
        };
        Ok((call, command))
    }

    fn operation(&mut self) -> Result<Operation> {
        Ok(match self.u8()? {
            0 => Operation::Check(self.text()?, self.version()?),
            1 => Operation::Set(self.text()?, self.data()?, self.version()?),
            2 => {
                let (path, data) = (self.text()?, self.data()?);
                let mode = match self.u8()? {
                    0 => Mode::Persistent,
                    1 => Mode::Ephemeral,
                    _ => Mode::EphemeralSequential,
                };
                Operation::Create(path, data, mode)
            }
            3 => Operation::Delete(self.text()?, self.version()?),
            _ => return Err(wrong()),
        })
    }

    fn reply(&mut self) -> Result<Reply> {
        Ok(match self.u8()? {
            0 => Reply::Synced,
            1 => Reply::Node(Node {
                data: self.data()?,
                version: self.version()?,
            }),
            2 => Reply::Children(self.many(Self::text)?),
            3 => Reply::Created(self.text()?),
            4 => Reply::Written(self.version()?),
            5 => Reply::Deleted,
            6 => Reply::Done(self.many(Self::reply)?),
            7 => Reply::Missing,
            8 => Reply::Exists,
            9 => Reply::Conflict,
            10 => Reply::Refused(self.u64()? as usize, Box::new(self.reply()?)),
            11 => Reply::Expired,
            12 => Reply::Unknown,
            13 => Reply::HasChildren,
            14 => Reply::Childless,
            _ => return Err(wrong()),
        })
    }

    /// What a session is told.
    pub fn event(&mut self) -> Result<Event> {
        Ok(match self.u8()? {
            0 => Event::Replied(CallId(self.u64()?), self.reply()?),
            1 => Event::Changed(self.text()?),
            2 => Event::Expired,
            _ => return Err(wrong()),
        })
    }
}
