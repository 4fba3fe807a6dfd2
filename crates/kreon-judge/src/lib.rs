//! Whether what concurrent clients saw can be explained: by an order of all calls, each at one moment between its beginning
//! and its end, in which every read sees the last write before it. Strict serializability of whole calls; of calls with
//! one key, linearizability. Sound and complete; it knows nothing of stores.
//!
//! - [`call`]: what clients did and saw, as it is judged
//! - [`record`]: takes it down while they do it; a call may succeed, fail or end in doubt
//! - [`value`]: values that say which write they come from
//! - `dense`, `frontier`: the search; [`judge()`] its verdict, with the story of what cannot be
//!
//! ```
//! use kreon_judge::{Outcome, Recorder, Seen, Verdict, judge};
//!
//! let recorder = Recorder::default();
//! let key = 7;
//! let version = recorder.next_version();
//! let put = recorder.begin(0, "put", vec![(key, Some(version))]);
//! // The server dies, and the client does not learn whether the write survives.
//! recorder.end(put, Outcome::Unknown);
//! let get = recorder.begin(0, "get", Vec::new());
//! recorder.end(get, Outcome::Done(vec![(key, Seen::Version(version))]));
//! let get = recorder.begin(1, "get", Vec::new());
//! recorder.end(get, Outcome::Done(vec![(key, Seen::Absent)]));
//! // It was seen and is gone.
//! assert!(matches!(judge(&recorder.history()), Verdict::Wrong(_)));
//! ```
#![forbid(unsafe_code)]

pub mod call;
mod dense;
mod frontier;
mod judge;
pub mod record;
pub mod value;

pub use call::{Call, History, Register, Seen, State, Verdict, Version, Violation};
pub use judge::{judge, judge_measured};
pub use record::{Begun, Outcome, Recorder};
