//! Storage of a tensor's elements.

use tt_dsl::{Dtype, HostBytes};

use crate::memory::Memory;
use crate::recycle::{LARGE, Recycled};

/// Up to so many bytes, zeros are written into memory that is at hand: a state is used whole, and to
/// clear it costs less than to have the system bring it in.
const STATE: usize = 4 * LARGE;

/// Elements of one dtype in host memory: memory of its own, or bytes shared with whoever mapped a
/// file.
///
/// Shared bytes are read where they lie, if their alignment allows it, and never written: the
/// first [`as_mut_slice`](Self::as_mut_slice) makes a copy.
pub struct Buffer<E: Dtype>(Storage<E>);

enum Storage<E: Dtype> {
    Owned(Vec<E::Repr>),
    /// The first so many elements of memory that was zero at first.
    Zeroed(Memory, usize),
    /// The first so many elements of memory that is used again.
    Recycled(Recycled, usize),
    /// Aligned, and a whole number of elements.
    Shared(HostBytes),
}

// Derived, this would ask for `E: Clone`.
impl<E: Dtype> Clone for Buffer<E> {
    fn clone(&self) -> Self {
        Self(match &self.0 {
            Storage::Owned(values) => Storage::Owned(values.clone()),
            Storage::Zeroed(..) | Storage::Recycled(..) => Storage::Owned(self.as_slice().to_vec()),
            Storage::Shared(bytes) => Storage::Shared(bytes.clone()),
        })
    }
}

impl<E: Dtype> Buffer<E> {
    /// Shares the bytes if they are aligned for the dtype; else copies them.
    #[must_use]
    pub fn from_bytes(bytes: HostBytes) -> Self {
        match bytemuck::try_cast_slice::<u8, E::Repr>(bytes.as_slice()) {
            Ok(_) => Self(Storage::Shared(bytes)),
            Err(_) => Self(Storage::Owned(bytemuck::pod_collect_to_vec(bytes.as_slice()))),
        }
    }

    /// `len` zeros. Memory that is never written is never brought in by the system: a cache may be
    /// as long as a context without being as large. What is large comes in huge pages: a state is read
    /// once a step, after all the weights, and by then its pages are no longer known to the CPU.
    #[must_use]
    pub fn zeros(len: usize) -> Self {
        let bytes = len * E::BYTES;
        if bytes < LARGE {
            return Self(Storage::Owned(bytemuck::zeroed_vec(len)));
        }
        if bytes <= STATE
            && let Some(mut memory) = Recycled::take(bytes)
        {
            memory.memory_mut().values_mut::<u8>(bytes).fill(0);
            return Self(Storage::Recycled(memory, len));
        }
        Self(Storage::Zeroed(Memory::new(bytes, LARGE), len))
    }

    /// `len` elements to be written, which hold whatever was left there.
    #[must_use]
    pub fn unwritten(len: usize) -> Self {
        match Recycled::take(len * E::BYTES) {
            Some(memory) => Self(Storage::Recycled(memory, len)),
            None => Self::zeros(len),
        }
    }

    /// The elements.
    #[must_use]
    pub fn as_slice(&self) -> &[E::Repr] {
        match &self.0 {
            Storage::Owned(values) => values,
            Storage::Zeroed(memory, len) => memory.values(*len),
            Storage::Recycled(memory, len) => memory.memory().values(*len),
            Storage::Shared(bytes) => bytemuck::cast_slice(bytes.as_slice()),
        }
    }

    /// The elements, to be written. Shared bytes are copied first.
    pub fn as_mut_slice(&mut self) -> &mut [E::Repr] {
        if let Storage::Shared(bytes) = &self.0 {
            self.0 = Storage::Owned(bytemuck::cast_slice(bytes.as_slice()).to_vec());
        }
        match &mut self.0 {
            Storage::Owned(values) => values,
            Storage::Zeroed(memory, len) => memory.values_mut(*len),
            Storage::Recycled(memory, len) => memory.memory_mut().values_mut(*len),
            Storage::Shared(_) => unreachable!("copied just before"),
        }
    }

    /// The bytes that the buffer shares, if it has no vector of its own.
    #[must_use]
    pub fn shared(&self) -> Option<&HostBytes> {
        match &self.0 {
            Storage::Owned(_) | Storage::Zeroed(..) | Storage::Recycled(..) => None,
            Storage::Shared(bytes) => Some(bytes),
        }
    }
}

impl<E: Dtype> From<Vec<E::Repr>> for Buffer<E> {
    fn from(values: Vec<E::Repr>) -> Self {
        Self(Storage::Owned(values))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use half::bf16;
    use tt_dsl::Bf16;

    use super::*;

    /// Two bf16, 1 and -2, at `offset` of memory that begins at an even address.
    fn bytes(offset: usize) -> HostBytes {
        let mut words = vec![0u16; 4];
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut words);
        bytes[offset..offset + 4].copy_from_slice(&[0x80, 0x3f, 0x00, 0xc0]);
        struct Words(Vec<u16>);
        impl AsRef<[u8]> for Words {
            fn as_ref(&self) -> &[u8] {
                bytemuck::cast_slice(&self.0)
            }
        }
        HostBytes::new(Arc::new(Words(words)), offset..offset + 4).expect("within the words")
    }

    fn values() -> [bf16; 2] {
        [bf16::from_f32(1.0), bf16::from_f32(-2.0)]
    }

    #[test]
    fn aligned_bytes_are_shared() {
        let source = bytes(2);
        let buffer = Buffer::<Bf16>::from_bytes(source.clone());
        assert_eq!(buffer.as_slice(), values());
        assert!(std::ptr::eq(buffer.as_slice().as_ptr().cast(), source.as_slice().as_ptr()));
    }

    #[test]
    fn bytes_at_an_odd_offset_are_copied() {
        let buffer = Buffer::<Bf16>::from_bytes(bytes(3));
        assert!(buffer.shared().is_none());
        assert_eq!(buffer.as_slice(), values());
    }

    #[test]
    fn memory_used_again_has_the_length_asked_for() {
        for len in [0, 5, 40_000, 32_768, 50_001] {
            let mut buffer = Buffer::<Bf16>::unwritten(len);
            assert_eq!(buffer.as_slice().len(), len);
            buffer.as_mut_slice().fill(bf16::ONE);
            assert_eq!(buffer.clone().as_slice(), vec![bf16::ONE; len]);
        }
        for len in [50_000, 1_500_000] {
            let mut buffer = Buffer::<Bf16>::zeros(len);
            assert!(buffer.as_slice().len() == len && buffer.as_slice().iter().all(|x| x.to_bits() == 0));
            buffer.as_mut_slice()[len - 1] = bf16::ONE;
            assert_eq!(buffer.clone().as_slice()[len - 1], bf16::ONE);
        }
    }

    #[test]
    fn a_state_begins_anew_in_memory_that_was_used() {
        let len = LARGE / 2;
        for _ in 0..3 {
            let mut buffer = Buffer::<Bf16>::zeros(len);
            assert!(buffer.as_slice().iter().all(|x| x.to_bits() == 0));
            buffer.as_mut_slice().fill(bf16::ONE);
        }
    }

    #[test]
    fn writing_does_not_reach_shared_bytes() {
        let source = bytes(0);
        let mut buffer = Buffer::<Bf16>::from_bytes(source.clone());
        let other = buffer.clone();
        buffer.as_mut_slice()[0] = bf16::ZERO;
        assert_eq!(buffer.as_slice(), [bf16::ZERO, values()[1]]);
        assert_eq!(other.as_slice(), values());
        assert_eq!(Buffer::<Bf16>::from_bytes(source).as_slice(), values());
    }
}
