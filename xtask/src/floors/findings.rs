//! What the checks gather.

/// What the checks found: each a line that says where, what, and what to do.
#[derive(Default)]
pub struct Findings {
    pub errors: Vec<String>,
    pub warnings: Vec<String>,
}
