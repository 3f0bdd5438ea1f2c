//! Cutting outputs into parts for the pool.

/// Cuts a row-major matrix into strips of `width` columns (the last may be narrower). A strip
/// is its piece of every row, from the first row to the last.
pub(super) fn strips<T>(matrix: &mut [T], columns: usize, width: usize) -> Vec<Vec<&mut [T]>> {
    if columns == 0 {
        return Vec::new();
    }
    let rows = matrix.len() / columns;
    let mut strips: Vec<Vec<&mut [T]>> =
        (0..columns.div_ceil(width)).map(|_| Vec::with_capacity(rows)).collect();
    for row in matrix.chunks_exact_mut(columns) {
        for (strip, piece) in strips.iter_mut().zip(row.chunks_mut(width)) {
            strip.push(piece);
        }
    }
    strips
}

#[cfg(test)]
mod tests {
    use super::strips;

    #[test]
    fn strips_hold_their_piece_of_each_row() {
        let mut matrix = [0, 1, 2, 3, 4, 10, 11, 12, 13, 14];
        let strips = strips(&mut matrix, 5, 2);
        assert_eq!(strips.len(), 3);
        assert_eq!(strips[0], [[0, 1], [10, 11]]);
        assert_eq!(strips[2], [[4], [14]]);
    }

    #[test]
    fn nothing_to_cut() {
        assert!(strips::<u8>(&mut [], 0, 4).is_empty());
        assert_eq!(strips::<u8>(&mut [], 5, 4).len(), 2);
    }
}
