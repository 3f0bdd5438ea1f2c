//! Rows read with a stride.

use half::bf16;

/// `count` rows of `width` values each, equally spaced in a slice.
///
/// The one place where an input is not contiguous is the query projection of full attention,
/// `T × Heads × 2 × D`: a head's query is followed by its gate. Either half is a [`Rows`] of
/// `T * Heads` rows of width `D`, `2 * D` apart.
#[derive(Clone, Copy, Debug)]
pub struct Rows<'a> {
    data: &'a [bf16],
    count: usize,
    width: usize,
    stride: usize,
    offset: usize,
}

impl<'a> Rows<'a> {
    /// All of `data`, as `count` rows of `width`.
    ///
    /// # Panics
    ///
    /// If `data` is not `count * width` long.
    #[must_use]
    pub fn contiguous(data: &'a [bf16], count: usize, width: usize) -> Self {
        assert_eq!(data.len(), count * width, "rows: length of the data");
        Self { data, count, width, stride: width, offset: 0 }
    }

    /// Row `i` is the `width` values from `offset + i * stride` on.
    ///
    /// # Panics
    ///
    /// If the last row would end behind the end of `data`.
    #[must_use]
    pub fn strided(data: &'a [bf16], count: usize, width: usize, stride: usize, offset: usize) -> Self {
        let end = count.checked_sub(1).map_or(0, |last| offset + last * stride + width);
        assert!(end <= data.len(), "rows: the last ends at {end}, the data at {}", data.len());
        Self { data, count, width, stride, offset }
    }

    /// The number of rows.
    #[must_use]
    pub fn count(&self) -> usize {
        self.count
    }

    /// The length of a row.
    #[must_use]
    pub fn width(&self) -> usize {
        self.width
    }

    /// Row `index`.
    ///
    /// # Panics
    ///
    /// If there is no such row.
    #[must_use]
    pub fn row(&self, index: usize) -> &'a [bf16] {
        assert!(index < self.count, "row {index} of {}", self.count);
        let start = self.offset + index * self.stride;
        &self.data[start..start + self.width]
    }

    /// The rows from `first` on, `count` of them.
    ///
    /// # Panics
    ///
    /// If there are fewer.
    #[must_use]
    pub fn part(&self, first: usize, count: usize) -> Self {
        assert!(first + count <= self.count, "rows {first} to {} of {}", first + count, self.count);
        Self { count, offset: self.offset + first * self.stride, ..*self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_of_interleaved_pairs() {
        let data: Vec<bf16> = (0..12u8).map(|i| bf16::from_f32(f32::from(i))).collect();
        let halves = |offset| Rows::strided(&data, 3, 2, 4, offset);
        let read = |rows: Rows<'_>| -> Vec<f32> {
            (0..rows.count()).flat_map(|i| rows.row(i).iter().map(|x| x.to_f32())).collect()
        };
        assert_eq!(read(halves(0)), [0., 1., 4., 5., 8., 9.]);
        assert_eq!(read(halves(2)), [2., 3., 6., 7., 10., 11.]);
        assert_eq!(read(halves(2).part(1, 2)), [6., 7., 10., 11.]);
    }

    #[test]
    fn no_rows_need_no_data() {
        assert_eq!(Rows::strided(&[], 0, 4, 8, 4).count(), 0);
        assert_eq!(Rows::contiguous(&[], 0, 4).count(), 0);
        assert!(Rows::contiguous(&[], 3, 0).row(2).is_empty());
    }
}
