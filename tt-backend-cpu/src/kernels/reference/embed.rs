//! Token embedding.

use half::bf16;

use crate::kernels::dims::check;

/// Row `ids[t]` of the table becomes row `t` of the output, bit for bit. Reference 3,
/// "Skeleton".
///
/// - `ids`: `T`, each less than `V`
/// - `table`: `V × width`
/// - `out`: `T × width`
///
/// # Panics
///
/// If a length disagrees, or if an id is not below `V`: ids are checked where they enter.
pub fn embed(ids: &[u32], table: &[bf16], width: usize, out: &mut [bf16]) {
    check("embed out", out.len(), ids.len() * width);
    for (t, &id) in ids.iter().enumerate() {
        let start = id as usize * width;
        assert!(start + width <= table.len(), "id {id} in a table of {} values, {width} a row", table.len());
        out[t * width..(t + 1) * width].copy_from_slice(&table[start..start + width]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_rows_bit_for_bit() {
        let table: Vec<bf16> = (0..6u16).map(|i| bf16::from_bits(0x7f7f + i)).collect();
        let mut out = [bf16::ZERO; 4];
        embed(&[2, 0], &table, 2, &mut out);
        assert_eq!(out.map(bf16::to_bits), [0x7f83, 0x7f84, 0x7f7f, 0x7f80]);
    }

    #[test]
    #[should_panic(expected = "id 3 in a table of 6 values")]
    fn an_id_beyond_the_table() {
        embed(&[3], &[bf16::ZERO; 6], 2, &mut [bf16::ZERO; 2]);
    }
}
