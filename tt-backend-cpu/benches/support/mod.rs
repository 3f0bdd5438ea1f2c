//! Numbers to measure with, and times.

// Each bench uses a part.
#![allow(dead_code)]

use std::time::{Duration, Instant};

use half::bf16;

/// Small numbers that are not all the same.
pub(crate) fn numbers(count: usize) -> Vec<bf16> {
    let some: Vec<bf16> = (0..4099).map(|i| bf16::from_f32((i * 37 % 101) as f32 / 1010.0 - 0.05)).collect();
    let mut numbers = Vec::with_capacity(count);
    while numbers.len() < count {
        numbers.extend_from_slice(&some[..some.len().min(count - numbers.len())]);
    }
    numbers
}

/// How long `body` takes.
pub(crate) fn time(body: impl FnOnce()) -> Duration {
    let start = Instant::now();
    body();
    start.elapsed()
}

/// The shortest of some times.
pub(crate) fn fastest(times: usize, mut body: impl FnMut()) -> Duration {
    (0..times).map(|_| time(&mut body)).min().unwrap_or_default()
}
