//! A bar while a large checkpoint is loaded.

use indicatif::{ProgressBar, ProgressStyle};

/// Below this a checkpoint is loaded before a bar could be read.
const LARGE: u64 = 64 << 20;

/// A bar over `bytes` on standard error. It is hidden when they are few; indicatif hides it by
/// itself when standard error is not a terminal.
pub(super) fn bar(bytes: u64) -> ProgressBar {
    if bytes < LARGE {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(bytes);
    // A template that does not parse costs the bar its looks, nothing else.
    if let Ok(style) = ProgressStyle::with_template("loading {wide_bar} {bytes}/{total_bytes} {msg}") {
        bar.set_style(style);
    }
    bar
}
