//! What the machine itself can do: the figures that kernels are held against.
//!
//! A decode step reads every weight once, so memory bounds it; a prompt uses a weight for every row,
//! so the multipliers bound it. Both are measured with the threads of a pool and nothing but the
//! work in question. A machine that is shared has other limits a minute later: measure them next to
//! what is compared with them.

use std::hint::black_box;
use std::time::{Duration, Instant};

use crate::pool::Pool;

/// How much a thread reads at a time.
const STRETCH: usize = 2 << 20;

/// Bytes of a cache line.
const LINE: usize = 64;

/// How far ahead the second way of reading asks for lines.
const AHEAD: usize = 32 * LINE;

/// Rounds of the multiplications: some tens of milliseconds.
const ROUNDS: usize = 1_000_000;

/// Multiply-adds that are under way at once: 12 registers of 8.
const LANES: usize = 96;

/// The time to read all of `data` once, part after part, by the better of two ways: leaving it to the
/// processor to see what comes next, and asking for it ahead.
///
/// Memory is not equally fast everywhere (its pages are large or small, and on a virtual machine so are
/// the host's), so read the very bytes that the work in question reads.
pub fn read_time(pool: &Pool, data: &[&[u8]]) -> Duration {
    let time = |ahead: bool| {
        let start = Instant::now();
        pool.for_each(data.iter().flat_map(|part| part.chunks(STRETCH)), |_, stretch| {
            black_box(if ahead { read_ahead(stretch) } else { read(stretch) });
        });
        start.elapsed()
    };
    time(false).min(time(true))
}

/// Bytes a second at which the pool's threads read `data`: the best of `times`.
pub fn read_rate(pool: &Pool, data: &[&[u8]], times: usize) -> f64 {
    let best = (0..times.max(1)).map(|_| read_time(pool, data)).min().unwrap_or_default();
    let bytes: usize = data.iter().map(|part| part.len()).sum();
    bytes as f64 / best.as_secs_f64().max(f64::MIN_POSITIVE)
}

/// Floating-point operations a second of multiply-adds in registers, each counted as two, with all
/// the pool's threads: the best of `times`.
pub fn multiply_add_rate(pool: &Pool, times: usize) -> f64 {
    let time = |_| {
        let start = Instant::now();
        pool.run(pool.threads(), |_| multiply_add());
        start.elapsed()
    };
    let best = (0..times.max(1)).map(time).min().unwrap_or_default();
    (2 * ROUNDS * LANES * pool.threads()) as f64 / best.as_secs_f64().max(f64::MIN_POSITIVE)
}

/// Lines of 16 words, combined word by word so that no sum waits for another.
fn read(stretch: &[u8]) -> [u32; 16] {
    let mut sums = [0; 16];
    for line in stretch.as_chunks::<LINE>().0 {
        combine(&mut sums, line);
    }
    sums
}

#[inline]
fn combine(sums: &mut [u32; 16], line: &[u8; LINE]) {
    for (sum, word) in sums.iter_mut().zip(line.as_chunks::<4>().0) {
        *sum ^= u32::from_ne_bytes(*word);
    }
}

#[cfg(target_arch = "x86_64")]
fn read_ahead(stretch: &[u8]) -> [u32; 16] {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};

    let mut sums = [0; 16];
    for line in stretch.as_chunks::<LINE>().0 {
        // SAFETY: a prefetch of any address is a hint, and no access.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(line.as_ptr().wrapping_add(AHEAD).cast()) };
        combine(&mut sums, line);
    }
    sums
}

#[cfg(not(target_arch = "x86_64"))]
fn read_ahead(stretch: &[u8]) -> [u32; 16] {
    read(stretch)
}

fn multiply_add() {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
        // SAFETY: the CPU has these instructions.
        return unsafe { multiply_add_avx2() };
    }
    let mut sums = [1.0f32; LANES];
    let half = black_box(0.5);
    for _ in 0..ROUNDS {
        for sum in &mut sums {
            *sum = *sum * half + 1.0;
        }
    }
    black_box(sums);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn multiply_add_avx2() {
    use std::arch::x86_64::{_mm256_fmadd_ps, _mm256_set1_ps};

    let (half, one) = (_mm256_set1_ps(black_box(0.5)), _mm256_set1_ps(1.0));
    let mut sums = [one; LANES / 8];
    for _ in 0..ROUNDS {
        for sum in &mut sums {
            *sum = _mm256_fmadd_ps(*sum, half, one);
        }
    }
    black_box(sums);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_of_reading_see_every_byte_of_whole_lines() {
        let mut data: Vec<u8> = (0..LINE * 100).map(|i| (i * 31 % 251) as u8).collect();
        let before = read(&data);
        assert_eq!(before, read_ahead(&data));
        for at in [0, LINE * 50 + 7, LINE * 100 - 1] {
            data[at] ^= 1;
            assert_ne!(read(&data), before, "byte {at}");
            data[at] ^= 1;
        }
    }

    #[test]
    fn rates_are_numbers() {
        let pool = Pool::new(1);
        assert!(read_rate(&pool, &[&[0; 4096], &[0; 100]], 1).is_finite());
        assert!(read_rate(&pool, &[], 0).is_finite());
    }
}
