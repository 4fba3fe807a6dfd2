//! The header of a packet that is to be sent.

use std::io::IoSlice;

use kreon_base::{Error, Result};
use kreon_wire::limits::HEADER_BYTES;
use kreon_wire::{Header, Role};

/// Length in bytes of the packet that `parts` make, if it may be sent on a link of this role.
pub fn sendable_bytes(parts: &[IoSlice<'_>], role: Role) -> Result<usize> {
    let bytes = parts.iter().map(|part| part.len()).sum::<usize>();
    let mut front = [0; HEADER_BYTES];
    let mut filled = 0;
    for part in parts {
        let taken = part.len().min(HEADER_BYTES - filled);
        front[filled..filled + taken].copy_from_slice(&part[..taken]);
        filled += taken;
    }
    let header = Header::decode(&front[..filled], role)
        .map_err(|violation| Error::invalid(format!("packet to send: {violation}")))?;
    if bytes != HEADER_BYTES + header.body_bytes as usize {
        let text = format!("packet to send: {bytes} bytes with the header");
        return Err(Error::invalid(format!("{text} of {}", header.body_bytes)));
    }
    Ok(bytes)
}
