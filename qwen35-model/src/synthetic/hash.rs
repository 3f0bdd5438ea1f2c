//! Random bits by a counter: any word of any tensor without the words before it.

/// The increment of SplitMix64: 2^64 over the golden ratio, odd.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// The words of one tensor.
#[derive(Debug, Clone, Copy)]
pub(super) struct Words(u64);

impl Words {
    /// The words of the tensor called `name`, which is without the text model's prefix.
    pub(super) fn of(seed: u64, name: &str) -> Self {
        Self(mix(seed ^ fnv1a(name)))
    }

    /// Word `index`.
    #[inline]
    pub(super) fn word(self, index: usize) -> u64 {
        mix(self.0.wrapping_add((index as u64 + 1).wrapping_mul(GOLDEN)))
    }
}

/// How many elements share a word.
pub(super) const LANES: usize = 4;
/// The largest sum of a lane's four nibbles, less the mean of 30; the smallest is its negative.
pub(super) const LARGEST: i32 = 30;
/// The variance of [`integers`]: of four uniform nibbles, (16^2 - 1) / 12 each.
pub(super) const VARIANCE: f64 = 85.0;

/// The four integers of a word, first element first, each plus [`LARGEST`]: sums of four nibbles, near
/// to a normal distribution.
#[inline]
pub(super) fn integers(word: u64) -> [usize; LANES] {
    const NIBBLES: u64 = 0x0f0f_0f0f_0f0f_0f0f;
    const BYTES: u64 = 0x00ff_00ff_00ff_00ff;
    let pairs = (word & NIBBLES) + ((word >> 4) & NIBBLES);
    let sums = (pairs & BYTES) + ((pairs >> 8) & BYTES);
    std::array::from_fn(|lane| (sums >> (16 * lane)) as usize & 0xff)
}

/// The finaliser of SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014).
#[inline]
fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The 64-bit FNV-1a hash.
fn fnv1a(text: &str) -> u64 {
    text.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The published test vectors of SplitMix64 with seed 1234567, and of FNV-1a.
    #[test]
    fn the_generators_are_the_published_ones() {
        let words = Words(1_234_567);
        assert_eq!(words.word(0), 6_457_827_717_110_365_317);
        assert_eq!(words.word(1), 3_203_168_211_198_807_973);
        assert_eq!(fnv1a(""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a("foobar"), 0x8594_4171_f739_67e8);
    }

    #[test]
    fn integers_are_sums_of_nibbles_with_the_stated_variance() {
        assert_eq!(integers(0x0001_0020_4321_ffff), [60, 10, 2, 1]);
        let words = Words::of(0, "x");
        let (mut sum, mut squares) = (0i64, 0i64);
        for index in 0..25_000 {
            for n in integers(words.word(index)) {
                let n = n as i64 - i64::from(LARGEST);
                assert!(n.unsigned_abs() <= LARGEST as u64);
                sum += n;
                squares += n * n;
            }
        }
        assert!((sum as f64 / 1e5).abs() < 0.1);
        assert!((squares as f64 / 1e5 - VARIANCE).abs() < 1.5);
    }
}
