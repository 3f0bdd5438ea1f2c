//! Memory that a thread keeps for its next kernel.
//!
//! A kernel's working memory is some megabytes. Fresh from the system, each of its pages would
//! cost a fault, which is a few percent of the time of a product; kept, it costs nothing.

use std::cell::Cell;

use crate::memory::Memory;

/// Buffers that are lent out one inside of another: a kernel's, and those of a task of it.
const DEPTH: usize = 8;

/// From so many bytes on memory is asked for in huge pages.
const LARGE: usize = 128 << 10;

thread_local! {
    static KEPT: [Cell<Memory>; DEPTH] = const { [const { Cell::new(Memory::EMPTY) }; DEPTH] };
    static LENT: Cell<usize> = const { Cell::new(0) };
}

/// Lends `body` the given number of values, aligned to 64 bytes. They hold whatever was left
/// there.
pub(super) fn with<R>(len: usize, body: impl FnOnce(&mut [f32]) -> R) -> R {
    let lent = LENT.get();
    let kept = KEPT.with(|kept| kept.get(lent).map(|kept| kept.replace(Memory::EMPTY)));
    let mut memory = kept.unwrap_or(Memory::EMPTY);
    let bytes = len * size_of::<f32>();
    if memory.len() < bytes {
        memory = Memory::new(bytes, LARGE);
    }
    LENT.set(lent + 1);
    let result = body(memory.values_mut(len));
    LENT.set(lent);
    KEPT.with(|kept| {
        if let Some(kept) = kept.get(lent) {
            kept.set(memory);
        }
    });
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_kept_and_do_not_overlap() {
        let first = with(100, |outer| {
            outer.fill(1.0);
            with(1000, |inner| inner.fill(2.0));
            assert!(outer.iter().all(|&x| x == 1.0));
            assert_eq!(outer.as_ptr().align_offset(64), 0);
            outer.as_ptr()
        });
        with(90, |again| {
            assert_eq!(again.as_ptr(), first);
            assert_eq!(again.len(), 90);
            assert!(again.iter().all(|&x| x == 1.0));
        });
    }

    #[test]
    fn deeper_than_what_is_kept() {
        fn nest(depth: usize) {
            with(10 + depth, |buffer| {
                buffer.fill(depth as f32);
                if depth < 2 * DEPTH {
                    nest(depth + 1);
                }
                assert!(buffer.iter().all(|&x| x == depth as f32));
            });
        }
        nest(0);
        assert_eq!(LENT.get(), 0);
    }
}
