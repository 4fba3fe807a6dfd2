//! Limits of what servers send each other. Each is checked before memory is taken for a packet.

use kreon_base::SEGMENT_BYTES;
use kreon_format::VOLUME_SEGMENTS_MAX;

/// First bytes of every packet.
pub const MAGIC: [u8; 4] = *b"KrnW";

/// Version of the messages that is written and read.
pub const WIRE_VERSION: u8 = 1;

/// Version of the content of the nodes of the coordinator that is written and read.
pub const NODE_VERSION: u8 = 1;

/// Bytes of the header of a packet.
pub const HEADER_BYTES: usize = 40;

/// Most bytes behind the header until both sides have proved who they are.
pub const UNPROVEN_BYTES_MAX: u32 = 4 << 10;

/// Most bytes of log or pages in one packet of a stream.
pub const STREAM_DATA_BYTES_MAX: u32 = 64 << 10;

/// Most bytes behind the header of a packet of a stream: the data, its LSN and its offset.
pub const STREAM_BYTES_MAX: u32 = STREAM_DATA_BYTES_MAX + 16;

/// Most bytes behind the header of a control message. A configuration fits, and so do four superblocks.
pub const CONTROL_BYTES_MAX: u32 = 1 << 20;

/// Most bytes behind the header of a client's request or its answer: a value of 16 MiB with its key, or a batch.
pub const REQUEST_BYTES_MAX: u32 = 17 << 20;

/// Block of a replicated volume in bytes: the unit of what is written to pages of it.
pub const BLOCK_BYTES: u64 = 4096;

/// Most bytes of the encoded configuration of a group, and of every other node of the coordinator.
pub const NODE_BYTES_MAX: u32 = CONTROL_BYTES_MAX - (64 << 10);

/// Most members of a group.
pub const MEMBERS_MAX: usize = 16;

/// Longest split key between ranges in bytes.
pub const SPLIT_KEY_BYTES_MAX: usize = 256;

/// Longest address or failure domain of a server in bytes of UTF-8.
pub const TEXT_BYTES_MAX: usize = 255;

/// Longest name of a cluster in bytes of UTF-8.
pub const CLUSTER_NAME_BYTES_MAX: usize = 64;

/// Longest volume in bytes.
pub const VOLUME_BYTES_MAX: u64 = VOLUME_SEGMENTS_MAX as u64 * SEGMENT_BYTES;

/// Longest value that clients write, in bytes.
pub const VALUE_BYTES_MAX: usize = 16 << 20;

/// Most tables that one write names.
pub const TABLES_MAX: usize = 256;

/// Most split keys of a new table.
pub const SPLITS_MAX: usize = 1024;

/// Most entries of one page of a scan.
pub const PAGE_ENTRIES_MAX: u32 = 64 << 10;

/// Most digests of blocks in one reply: 4 MiB of a volume.
pub const DIGESTS_MAX: u32 = 1024;

/// Longest text of a failure in bytes of UTF-8.
pub const FAILURE_TEXT_BYTES_MAX: usize = 1024;
