//! The greedy choice of a token.

/// The index of the largest value. Reference 3, "Skeleton".
///
/// Of equal values the lowest index wins. NaN is smaller than every number: it wins only where
/// there is nothing else, and then as index 0, which is also the answer for no values at all.
#[must_use]
pub fn argmax(logits: &[f32]) -> usize {
    let mut best: Option<(usize, f32)> = None;
    for (index, &value) in logits.iter().enumerate() {
        let wins = match best {
            None => !value.is_nan(),
            Some((_, largest)) => value > largest,
        };
        if wins {
            best = Some((index, value));
        }
    }
    best.map_or(0, |(index, _)| index)
}

#[cfg(test)]
mod tests {
    use super::argmax;

    #[test]
    fn ties_nan_and_infinities() {
        const NAN: f32 = f32::NAN;
        const INF: f32 = f32::INFINITY;
        assert_eq!(argmax(&[]), 0);
        assert_eq!(argmax(&[1.0, 3.0, 3.0, 2.0]), 1);
        assert_eq!(argmax(&[-0.0, 0.0]), 0, "zeros are equal");
        assert_eq!(argmax(&[NAN, -INF, NAN]), 1);
        assert_eq!(argmax(&[NAN, 1.0, NAN, 2.0]), 3);
        assert_eq!(argmax(&[NAN, NAN]), 0);
        assert_eq!(argmax(&[0.0, INF, NAN, INF]), 1);
    }
}
