//! A safetensors file's header, checked against the bytes that are there.

use super::error::CheckpointError;
use super::files::StoredTensor;
use safetensors::tensor::Metadata;
use std::collections::BTreeMap;
use std::sync::Arc;
use tt_dsl::HostBytes;

/// Bytes before a safetensors header: its length, a little-endian u64.
const LENGTH_BYTES: usize = 8;
/// The longest header that the format permits.
const LONGEST_HEADER: usize = 100_000_000;

/// Whoever owns the bytes of a file.
type Owner = Arc<dyn AsRef<[u8]> + Send + Sync>;

/// The tensors of a file's bytes. Every range is checked against the bytes that are there.
pub(super) fn parse(
    owner: Owner,
    place: &str,
    file: &str,
) -> Result<BTreeMap<String, StoredTensor>, CheckpointError> {
    let (start, metadata) = parse_header((*owner).as_ref(), place)?;
    let file: Arc<str> = file.into();
    let mut tensors = BTreeMap::new();
    for (name, info) in metadata.tensors() {
        // The header was compared with the file's length, so neither sum can overflow and every
        // range exists; the error is for a header that the check above failed to see through.
        let range = start + info.data_offsets.0..start + info.data_offsets.1;
        let Some(bytes) = HostBytes::new(owner.clone(), range.clone()) else {
            return Err(CheckpointError::format(
                place,
                format!("the bytes of tensor `{name}` inside the file"),
                format!("offsets {range:?}"),
            ));
        };
        let tensor = StoredTensor { dtype: info.dtype, shape: info.shape.clone(), bytes, file: file.clone() };
        tensors.insert(name, tensor);
    }
    Ok(tensors)
}

/// Where the tensors' bytes start, and the header. Written out rather than left to
/// `SafeTensors::read_metadata`, whose error for a truncated file names no length and whose last
/// sum may overflow.
fn parse_header(bytes: &[u8], place: &str) -> Result<(usize, Metadata), CheckpointError> {
    let Some((length, rest)) = bytes.split_first_chunk::<LENGTH_BYTES>() else {
        return Err(CheckpointError::format(
            place,
            format!("at least {LENGTH_BYTES} bytes of safetensors"),
            format!("{} bytes", bytes.len()),
        ));
    };
    let length = u64::from_le_bytes(*length);
    let header = usize::try_from(length)
        .ok()
        .filter(|&length| length <= LONGEST_HEADER)
        .and_then(|length| rest.get(..length))
        .ok_or_else(|| {
            CheckpointError::format(
                place,
                format!("a safetensors header of {length} bytes, as its first eight bytes say"),
                format!("{} bytes after them", rest.len()),
            )
        })?;
    let metadata: Metadata = serde_json::from_slice(header)
        .map_err(|error| CheckpointError::format(place, "a valid safetensors header", error))?;
    let data = rest.len() - header.len();
    if metadata.data_len() != data {
        return Err(CheckpointError::format(
            place,
            format!("{} bytes of tensors, as its header says", metadata.data_len()),
            format!("{data} bytes"),
        ));
    }
    Ok((LENGTH_BYTES + header.len(), metadata))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use safetensors::Dtype;

    /// A file of the given header and `data` bytes of zeros.
    fn file(header: &str, data: usize) -> Vec<u8> {
        let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
        bytes.extend(header.bytes());
        bytes.extend(std::iter::repeat_n(0, data));
        bytes
    }

    fn parsed(bytes: Vec<u8>) -> Result<BTreeMap<String, StoredTensor>, CheckpointError> {
        parse(Arc::new(bytes), "here", "f")
    }

    fn small() -> Vec<u8> {
        let header = r#"{"__metadata__":{"format":"pt"},
            "a":{"dtype":"U8","shape":[3],"data_offsets":[0,3]},
            "b":{"dtype":"BF16","shape":[2,2],"data_offsets":[3,11]}}"#;
        let mut bytes = file(header, 11);
        let start = bytes.len() - 11;
        bytes[start..].copy_from_slice(&[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]);
        bytes
    }

    #[test]
    fn tensors_lie_where_the_header_says_also_at_odd_offsets() {
        let tensors = parsed(small()).unwrap();
        assert_eq!(tensors["a"].bytes.as_slice(), [1, 2, 3]);
        assert_eq!((tensors["b"].dtype, tensors["b"].shape.as_slice()), (Dtype::BF16, &[2, 2][..]));
        assert_eq!(tensors["b"].bytes.as_slice(), [4, 5, 6, 7, 8, 9, 10, 11]);
    }

    #[test]
    fn a_header_that_lies_is_refused_with_what_it_says() {
        let error = |bytes: Vec<u8>| parsed(bytes).err().unwrap().to_string();
        assert_eq!(error(vec![1, 2]), "here: expected at least 8 bytes of safetensors, found 2 bytes");
        assert_eq!(
            error(u64::MAX.to_le_bytes().to_vec()),
            "here: expected a safetensors header of 18446744073709551615 bytes, as its first eight bytes say, \
             found 0 bytes after them"
        );
        let header = r#"{"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}}"#;
        assert_eq!(
            error(file(header, 3)),
            "here: expected 4 bytes of tensors, as its header says, found 3 bytes"
        );
        assert!(parsed(file(header, 5)).is_err());
        for header in [
            r#"{"a":{"dtype":"U8","shape":[4],"data_offsets":[0,3]}}"#,
            r#"{"a":{"dtype":"U8","shape":[4],"data_offsets":[1,5]}}"#,
            r#"{"a":{"dtype":"U8","shape":[4],"data_offsets":[4,0]}}"#,
            r#"{"a":{"dtype":"F9","shape":[4],"data_offsets":[0,4]}}"#,
            r#"{"a":{"dtype":"BF16","shape":[9223372036854775807,4],"data_offsets":[0,4]}}"#,
            "{",
            "[]",
            "",
        ] {
            let error = error(file(header, 4));
            assert!(error.starts_with("here: expected a valid safetensors header, found "), "{error}");
        }
    }

    #[test]
    fn lengths_near_the_largest_number_do_not_wrap() {
        // Eight tensors of almost 2^61 bytes end just below 2^64; with the header it would wrap.
        let length = (1usize << 61) - 1;
        let entry = |i: usize| {
            let (start, end) = (i * length, (i + 1) * length);
            format!(r#""{i}":{{"dtype":"U8","shape":[{length}],"data_offsets":[{start},{end}]}}"#)
        };
        let header = format!("{{{}}}", (0..8).map(entry).collect::<Vec<_>>().join(","));
        assert!(parsed(file(&header, 8)).is_err());
    }

    proptest! {
        #[test]
        fn damage_never_panics(cut in 0usize..400, flips in prop::collection::vec((0usize..400, any::<u8>()), 0..4)) {
            let mut bytes = small();
            for (at, value) in flips {
                let at = at % bytes.len();
                bytes[at] = value;
            }
            bytes.truncate(bytes.len().saturating_sub(cut % 300));
            if let Ok(tensors) = parsed(bytes) {
                for tensor in tensors.values() {
                    prop_assert!(tensor.bytes.as_slice().len() <= 11);
                }
            }
        }
    }
}
