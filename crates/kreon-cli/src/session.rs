//! An open store with what the command line said about it: region, encodings, durability.

use std::cell::RefCell;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use kreon::{Durability, Error, Region, Result, Store};

use crate::args::{Command, Shared};
use crate::encoding::Encoding;

/// What every command works on.
pub struct Session {
    pub store: Store,
    pub key_encoding: Encoding,
    pub value_encoding: Encoding,
    pub durability: Durability,
    /// The region that commands mean; the shell changes it.
    region_name: RefCell<String>,
}

impl Session {
    /// Opens the store for `command`; makes it only if the command does.
    pub fn open(shared: &Shared, command: &Command) -> Result<Self> {
        let path = shared.store.as_ref().ok_or_else(|| {
            Error::invalid("no store named: give --store PATH or set KREON_STORE")
        })?;
        let durability = match shared.sync {
            true => Durability::Sync,
            false => Durability::Buffered,
        };
        let mut options = Store::options()
            .memory_bytes(shared.memory.unwrap_or(command.memory_bytes_default()))
            .durability(durability)
            .create(command.creates_store())
            .format(command.formats_store());
        if let Some(volume_bytes_max) = shared.volume_max {
            options = options.volume_bytes_max(volume_bytes_max as u64);
        }
        let store = options.open(path)?;
        Ok(Self {
            store,
            key_encoding: shared.key_encoding.unwrap_or(shared.encoding),
            value_encoding: shared.value_encoding.unwrap_or(shared.encoding),
            durability,
            region_name: RefCell::new(shared.region.clone()),
        })
    }

    pub fn region_name(&self) -> String {
        self.region_name.borrow().clone()
    }

    pub fn set_region_name(&self, name: &str) {
        *self.region_name.borrow_mut() = name.to_owned();
    }

    /// The region to read from or delete in: it must be there.
    pub fn existing_region(&self) -> Result<Region> {
        self.store.existing_region(&self.region_name.borrow())
    }

    /// The region to write to: made if it is not there.
    pub fn region(&self) -> Result<Region> {
        self.store.region(&self.region_name.borrow())
    }

    /// The key that an argument stands for.
    pub fn key(&self, argument: &OsStr) -> Result<Vec<u8>> {
        decode(self.key_encoding, argument, "key")
    }

    /// The value that an argument stands for.
    pub fn value(&self, argument: &OsStr) -> Result<Vec<u8>> {
        decode(self.value_encoding, argument, "value")
    }

    /// Makes what was written durable and gives the store free.
    pub fn close(self) -> Result<()> {
        self.store.close()
    }
}

fn decode(encoding: Encoding, argument: &OsStr, what: &str) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    encoding
        .decode_into(argument.as_bytes(), &mut bytes)
        .map_err(|reason| Error::invalid(format!("the {what} is {reason}")))?;
    Ok(bytes)
}
