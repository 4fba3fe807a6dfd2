//! What a process may set of its TCP fabric.

use kreon_base::{Error, Result};
use kreon_wire::limits::CLUSTER_NAME_BYTES_MAX;

use crate::handshake::Key;

/// What a process may set of its TCP fabric.
#[derive(Clone, Debug)]
pub struct TcpSettings {
    /// Name of the cluster, 1 to 64 bytes: others are refused.
    pub cluster: String,
    /// The key of the cluster. Without one, only loopback addresses are listened on and connected to.
    pub key: Option<Key>,
    /// Bytes of one link that wait to be written, beside those that the kernel has; at least 64 KiB.
    pub window_bytes: u32,
    /// Connections at a time that have not proven who they are; more wait in the kernel. At least 1.
    pub unproven_max: usize,
    /// Time for a proof, for who accepts; who connects has at most this, too. 1 to 60,000.
    pub proof_ms: u32,
    /// Links at a time; more are refused as busy.
    pub links_max: usize,
    /// How long the rest of a closed link is still sent.
    pub linger_ms: u32,
    /// A link is dead when nothing that was sent on it was acknowledged by the peer's kernel, or taken by a peer that reads
    /// nothing, for so long. At least 100. Without a bound, a link that was cut off for a while stays silent for as long again
    /// when packets pass, because TCP repeats ever more seldom what was lost.
    pub unacknowledged_ms: u32,
}

impl TcpSettings {
    /// The usual ones: 1 MiB, 16 connections, 5 s, 1024 links, 1 s, 5 s.
    pub fn new(cluster: &str, key: Option<Key>) -> Self {
        Self {
            cluster: cluster.into(),
            key,
            window_bytes: 1 << 20,
            unproven_max: 16,
            proof_ms: 5000,
            links_max: 1024,
            linger_ms: 1000,
            unacknowledged_ms: 5000,
        }
    }

    pub(super) fn check(&self) -> Result<()> {
        let name_bytes = self.cluster.len();
        if !(1..=CLUSTER_NAME_BYTES_MAX).contains(&name_bytes)
            || self.cluster.contains(char::is_control)
        {
            let text = format!("cluster name {:?}: 1 to 64 bytes, printable", self.cluster);
            return Err(Error::invalid(text));
        }
        if self.window_bytes < 64 << 10 {
            let text = format!("window of {} bytes: at least 64 KiB", self.window_bytes);
            return Err(Error::invalid(text));
        }
        if self.unproven_max == 0 || !(1..=60_000).contains(&self.proof_ms) {
            let text = "no time or no connections for proofs";
            return Err(Error::invalid(text));
        }
        if self.unacknowledged_ms < 100 {
            let text = "links that are dead before an answer can come";
            return Err(Error::invalid(text));
        }
        Ok(())
    }
}
