//! Working memory.

use memmap2::MmapMut;

/// A line of the cache: what memory is aligned to at least.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line([u64; 8]);

// SAFETY: an array of integers, with no padding: all bytes of it may be zero.
unsafe impl bytemuck::Zeroable for Line {}
// SAFETY: as above, and any bytes will do.
unsafe impl bytemuck::Pod for Line {}

/// A huge page of the system, in bytes.
const HUGE: usize = 2 << 20;

/// Memory of numbers, aligned to 64 bytes.
///
/// Kernels go through matrices row by row of a strip of columns, and each row is on another page of
/// 4 KiB. Large memory is therefore asked for in huge pages, where the system has them to give: the
/// product of 512 rows is some 7 % faster for it.
pub(crate) struct Memory(Storage);

enum Storage {
    Lines(Vec<Line>),
    Mapped(MmapMut),
}

impl Memory {
    /// None.
    pub(crate) const EMPTY: Self = Self(Storage::Lines(Vec::new()));

    /// `bytes` zero bytes at least, in huge pages if that is not less than `large` bytes.
    pub(crate) fn new(bytes: usize, large: usize) -> Self {
        if bytes >= large
            && let Ok(mapped) = MmapMut::map_anon(bytes.next_multiple_of(HUGE))
        {
            // Without huge pages it is memory all the same.
            #[cfg(target_os = "linux")]
            let _ = mapped.advise(memmap2::Advice::HugePage);
            return Self(Storage::Mapped(mapped));
        }
        Self(Storage::Lines(vec![Line([0; 8]); bytes.div_ceil(size_of::<Line>())]))
    }

    /// The number of bytes.
    pub(crate) fn len(&self) -> usize {
        match &self.0 {
            Storage::Lines(lines) => size_of_val(lines.as_slice()),
            Storage::Mapped(mapped) => mapped.len(),
        }
    }

    /// The first `len` numbers of it.
    pub(crate) fn values<T: bytemuck::Pod>(&self, len: usize) -> &[T] {
        let bytes = match &self.0 {
            Storage::Lines(lines) => bytemuck::cast_slice(lines),
            Storage::Mapped(mapped) => &mapped[..],
        };
        bytemuck::cast_slice(&bytes[..len * size_of::<T>()])
    }

    /// The first `len` numbers of it, to be written.
    pub(crate) fn values_mut<T: bytemuck::Pod>(&mut self, len: usize) -> &mut [T] {
        let bytes = match &mut self.0 {
            Storage::Lines(lines) => bytemuck::cast_slice_mut(lines),
            Storage::Mapped(mapped) => &mut mapped[..],
        };
        bytemuck::cast_slice_mut(&mut bytes[..len * size_of::<T>()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_kinds_hold_numbers() {
        for (count, large) in [(0, 1 << 20), (100, 1 << 20), (100_000, 1 << 16), (600_000, 1 << 16)] {
            let mut memory = Memory::new(count * 4, large);
            assert!(memory.len() >= count * 4);
            assert!(memory.values::<f32>(count).iter().all(|&x| x == 0.0));
            memory.values_mut::<f32>(count).fill(1.0);
            assert!(memory.values::<f32>(count).iter().all(|&x| x == 1.0));
            assert_eq!(memory.values::<f32>(count).as_ptr().align_offset(64), 0);
        }
    }
}
