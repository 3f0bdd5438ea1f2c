//! Memory of large buffers, kept for the next ones.
//!
//! A pass over 512 rows makes and drops some hundred tensors of megabytes. Fresh from the system
//! each page of them costs a fault and is cleared first, which would take longer than many an
//! operation does; the memory of the tensor that was dropped a moment ago is in the caches.

use std::sync::{Mutex, PoisonError};

use crate::memory::Memory;

/// Bytes that are kept at most: a few tensors of the largest kind.
const MOST: usize = 48 << 20;

/// Memory worth keeping, in bytes. Less of it an allocator has at hand.
const LEAST: usize = 64 << 10;

/// From so many bytes on memory is asked for in huge pages.
pub(crate) const LARGE: usize = 1 << 20;

static KEPT: Mutex<Vec<Memory>> = Mutex::new(Vec::new());

/// Memory that goes back where it came from when it is dropped.
pub(crate) struct Recycled(Memory);

impl Recycled {
    /// At least `bytes` bytes, which hold whatever was left there; or nothing, if so little is not
    /// worth it.
    pub(crate) fn take(bytes: usize) -> Option<Self> {
        if bytes < LEAST {
            return None;
        }
        let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
        let most = (2 * bytes).max(2 * LARGE);
        let fitting = kept.iter().enumerate().filter(|(_, memory)| (bytes..=most).contains(&memory.len()));
        let best = fitting.min_by_key(|(_, memory)| memory.len()).map(|(i, _)| i);
        let taken = best.map(|i| kept.swap_remove(i));
        drop(kept);
        Some(Self(taken.unwrap_or_else(|| Memory::new(bytes, LARGE))))
    }

    pub(crate) fn memory(&self) -> &Memory {
        &self.0
    }

    pub(crate) fn memory_mut(&mut self) -> &mut Memory {
        &mut self.0
    }
}

impl Drop for Recycled {
    fn drop(&mut self) {
        let memory = std::mem::replace(&mut self.0, Memory::EMPTY);
        let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
        kept.push(memory);
        // What has been there for longest is let go.
        let mut total: usize = kept.iter().map(Memory::len).sum();
        while total > MOST {
            total -= kept.remove(0).len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_bounded() {
        let blocks: Vec<_> = (0..10).map(|_| Recycled::take(MOST / 4)).collect();
        drop(blocks);
        let kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
        let total: usize = kept.iter().map(Memory::len).sum();
        assert!(total <= MOST, "{total}");
        assert!(!kept.is_empty());
    }

    #[test]
    fn little_is_not_worth_it() {
        assert!(Recycled::take(LEAST - 1).is_none());
        let block = Recycled::take(LEAST + 1).expect("enough");
        assert!(block.memory().len() > LEAST);
    }
}
