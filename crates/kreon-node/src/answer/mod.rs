//! Requests of clients, each answered by the thread that reads it.

mod asked;
mod backups;
mod compare;
mod desk;
mod reads;
mod scans;
mod shipping;
mod standing;
mod verify;
mod writes;

pub use desk::Desk;
pub use shipping::Shipping;
