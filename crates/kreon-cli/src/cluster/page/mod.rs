//! The pages of a server: how it stands, for people (`/`), for programs (`/status.json`) and for Prometheus (`/metrics`).

mod as_json;
mod http;
mod metrics;
mod picture;
#[cfg(test)]
mod tests;

pub use as_json::stage_name;
pub use http::Pages;

/// What stands before the address of the page in what a server says at its start.
pub const STATUS_PAGE: &str = "status page at ";
