//! How far long work has come, on standard error if that is a terminal.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use kreon::Progress;

const BAR: &str = "{msg} {bar:30} {percent}% ETA {eta}";

/// A bar that is gone when it is dropped.
pub struct Bar(ProgressBar);

impl Bar {
    /// Nothing is done yet.
    pub fn new() -> Self {
        let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr());
        if let Ok(style) = ProgressStyle::with_template(BAR) {
            bar.set_style(style);
        }
        Self(bar)
    }

    /// So much is done.
    pub fn show(&self, progress: Progress) {
        self.0.set_length(progress.total);
        self.0.set_message(progress.step);
        self.0.set_position(progress.done);
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
