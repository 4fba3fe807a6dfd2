//! The commands, one file each (or a family).

mod backup;
mod compact;
mod completions;
mod count;
mod delete;
mod export;
mod get;
mod import;
mod man;
mod put;
mod region_options;
mod regions;
mod repair;
mod scan;
mod selection;
mod stats;
mod ttl;
mod verify;
mod version;

pub use backup::{Backup, Restore, VerifyBackup};
pub use compact::Compact;
pub use completions::Completions;
pub use count::Count;
pub use delete::Delete;
pub use export::Export;
pub use get::Get;
pub use import::{Import, Reading, quantiles};
pub use man::Man;
pub use put::Put;
pub use regions::Regions;
pub use repair::Repair;
pub use scan::Scan;
pub use stats::Stats;
pub use ttl::{Persist, Ttl};
pub use verify::Verify;
pub use version::Version;
