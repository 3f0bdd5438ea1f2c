//! What the threads will read next, for those that have nothing to do.
//!
//! A decode step reads every weight once, product after product, and each step in the same order.
//! Between two products lie small operations on few values, and while they run memory would be
//! idle, which is what bounds the step. So it is remembered which operand came after which, and a
//! thread without work fetches the beginning of its share of the next into its own cache.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Bytes of an operand that a thread fetches, at most: part of a second-level cache.
const MOST: usize = 512 << 10;

/// Operands that are remembered. A model has fewer; those of models that are gone are forgotten.
const OPERANDS: usize = 4096;

/// Bytes of a cache line.
const LINE: usize = 64;

/// Lines that are asked for between two looks for work.
const LINES: usize = 4;

/// The order of operands, and the one that comes next.
///
/// Of an operand only the place is kept. When it is fetched from, it may be gone: then that is a
/// wasted hint, and no more.
#[derive(Default)]
pub(super) struct Ahead {
    order: Mutex<Order>,
    /// Raised whenever another operand comes next.
    turn: AtomicU64,
    /// The next operand's address. Read without the lock, so it may not be that of `len`: a hint too.
    first: AtomicUsize,
    /// Its length; 0 if none is known.
    len: AtomicUsize,
}

/// The address and the length of an operand.
type Place = (usize, usize);

#[derive(Default)]
struct Order {
    /// What came after the operand at an address, the last time.
    followers: HashMap<usize, Place>,
    /// The address of the operand that is read now.
    last: usize,
}

impl Ahead {
    /// Notes that `operand` is read now.
    pub(super) fn reading(&self, operand: &[u8]) {
        let place = (operand.as_ptr().addr(), operand.len());
        let mut order = self.order.lock().unwrap_or_else(PoisonError::into_inner);
        if order.followers.len() >= OPERANDS {
            order.followers.clear();
        }
        let last = std::mem::replace(&mut order.last, place.0);
        order.followers.insert(last, place);
        let (first, len) = order.followers.get(&place.0).copied().unwrap_or_default();
        drop(order);
        self.first.store(first, Ordering::Relaxed);
        self.len.store(len, Ordering::Relaxed);
        self.turn.fetch_add(1, Ordering::Release);
    }
}

/// How far a thread has come.
#[derive(Default)]
pub(super) struct Fetched {
    turn: u64,
    at: usize,
    end: usize,
}

impl Fetched {
    /// Fetches some lines for thread `thread` of `threads`. Says whether there were any.
    pub(super) fn some(&mut self, ahead: &Ahead, thread: usize, threads: usize) -> bool {
        let turn = ahead.turn.load(Ordering::Acquire);
        if turn != self.turn {
            self.turn = turn;
            let (first, len) = (ahead.first.load(Ordering::Relaxed), ahead.len.load(Ordering::Relaxed));
            self.at = first + thread * (len / threads);
            self.end = self.at + (len / threads).min(MOST);
        }
        if self.at >= self.end {
            return false;
        }
        for line in 0..LINES {
            fetch(self.at + line * LINE);
        }
        self.at += LINES * LINE;
        true
    }
}

#[cfg(target_arch = "x86_64")]
fn fetch(address: usize) {
    use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};

    // SAFETY: a prefetch of any address is a hint, and no access.
    unsafe { _mm_prefetch::<_MM_HINT_T1>(std::ptr::without_provenance(address)) };
}

#[cfg(not(target_arch = "x86_64"))]
fn fetch(_: usize) {}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many lines a thread fetches until there are no more.
    fn lines(fetched: &mut Fetched, ahead: &Ahead, thread: usize) -> usize {
        std::iter::from_fn(|| fetched.some(ahead, thread, 2).then_some(LINES)).sum()
    }

    #[test]
    fn what_came_after_an_operand_is_fetched_once_by_each_thread() {
        let (a, b, c) = (vec![0u8; 100 * LINE], vec![0u8; 64 * LINE], vec![0u8; 8 * MOST]);
        let ahead = Ahead::default();
        let mut threads = [Fetched::default(), Fetched::default()];
        // The first time nothing is known.
        for operand in [&a, &b, &c, &a] {
            assert_eq!(lines(&mut threads[0], &ahead, 0), 0);
            ahead.reading(operand);
        }
        // Now `b` is next.
        assert_eq!(ahead.first.load(Ordering::Relaxed), b.as_ptr().addr());
        for (thread, fetched) in threads.iter_mut().enumerate() {
            assert_eq!(lines(fetched, &ahead, thread), 32);
            assert_eq!(fetched.at, b.as_ptr().addr() + (thread + 1) * 32 * LINE);
            assert_eq!(lines(fetched, &ahead, thread), 0);
        }
        // Then `c`, of which only the beginnings of both halves are.
        ahead.reading(&b);
        for (thread, fetched) in threads.iter_mut().enumerate() {
            assert_eq!(lines(fetched, &ahead, thread), MOST / LINE);
            assert_eq!(fetched.end, c.as_ptr().addr() + thread * 4 * MOST + MOST);
        }
    }

    #[test]
    fn another_order_is_learned_and_what_is_kept_is_bounded() {
        let data = vec![0u8; OPERANDS + 2];
        let ahead = Ahead::default();
        let (a, b, c) = (&data[0..1], &data[1..2], &data[2..3]);
        for operand in [a, b, a, c, a] {
            ahead.reading(operand);
        }
        assert_eq!(ahead.first.load(Ordering::Relaxed), c.as_ptr().addr());
        for operand in data.chunks(1) {
            ahead.reading(operand);
        }
        assert!(lock(&ahead).followers.len() <= OPERANDS);
    }

    fn lock(ahead: &Ahead) -> std::sync::MutexGuard<'_, Order> {
        ahead.order.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
