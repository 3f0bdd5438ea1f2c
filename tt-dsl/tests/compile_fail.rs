//! Mistakes that must not compile, each with a twin that does (see README.md).
//!
//! Messages are compared word for word; `TRYBUILD=overwrite` writes them anew after a change of a
//! signature or of the compiler.

use std::collections::BTreeSet;
use std::path::Path;

/// The names of the Rust files in a folder of `tests/`.
fn names(folder: &str) -> BTreeSet<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(folder);
    std::fs::read_dir(folder)
        .expect("the folder is there")
        .map(|entry| entry.expect("an entry of it").file_name().to_string_lossy().into_owned())
        .filter_map(|file| file.strip_suffix(".rs").map(str::to_owned))
        .collect()
}

#[test]
fn mistakes_are_refused_and_their_twins_are_not() {
    // A test that fails to compile for a reason of its own proves nothing (museum 30).
    assert_eq!(names("ui"), names("ui-pass"));
    let cases = trybuild::TestCases::new();
    cases.compile_fail("tests/ui/*.rs");
    cases.pass("tests/ui-pass/*.rs");
}

/// The mistakes whose message has no dim on its first line. None is about the dims of an op's
/// arguments.
const SILENT_ON_DIMS: [&str; 25] = [
    // Dtypes.
    "a_log_in_bf16",
    "buffer_of_another_dtype",
    "f32_constant_in_residual_stream",
    "f32_master_staged_as_bf16",
    "op_for_another_dtype",
    "output_in_another_dtype",
    "recurrent_state_in_bf16",
    "repr_for_a_dtype",
    "u16_bits_as_bf16_master",
    // Kinds: something else where a tensor, a master, a weight, logits or a dim is due.
    "bf16_activation_as_logits",
    "host_master_as_tensor",
    "number_for_a_dim",
    "plain_norm_where_zero_centred_is_due",
    "two_backends_mixed",
    "view_to_download",
    "view_to_linear",
    "view_to_staging",
    "zero_centred_norm_where_plain_is_due",
    // Fields: their types are what they are, and rustc speaks of them below the first line.
    "column_for_a_table",
    "conv_state_in_another_layout",
    // Bindings and ops.
    "missing_op",
    "state_borrowed_twice",
    "used_after_renaming",
    "view_of_a_state_across_its_update",
    "view_outlives_tensor",
];

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !(c.is_alphanumeric() || c == '_')).filter(|word| !word.is_empty())
}

/// The dims that a source declares, by `dim!` or as types of its configuration, and those that
/// every source has.
fn dims(source: &str) -> BTreeSet<&str> {
    let declared = |line| {
        let mut words = words(line);
        match (words.next()?, words.next()?) {
            ("type", name) if line.contains(": Dim") => Some(name),
            (name, size) if line.contains(" = ") && size.starts_with(char::is_numeric) => Some(name),
            _ => None,
        }
    };
    source.lines().filter_map(declared).chain(["One", "Two"]).collect()
}

/// The first line of a message about dims names them as their author did: all that it quotes, if
/// it tells what it expected from what it found.
#[test]
fn first_lines_name_the_authors_dims() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ui");
    let names_dims = |name: &String| {
        let source = std::fs::read_to_string(folder.join(format!("{name}.rs"))).unwrap();
        let message = std::fs::read_to_string(folder.join(format!("{name}.stderr"))).unwrap();
        let first = message.lines().next().unwrap();
        let dims = dims(&source);
        let mut quoted =
            first.split('`').skip(1).step_by(2).map(|quoted| words(quoted).any(|word| dims.contains(word)));
        if first.contains("expected") && first.contains("found") {
            quoted.next() == Some(true) && quoted.all(|names_one| names_one)
        } else {
            quoted.any(|names_one| names_one)
        }
    };
    let silent: BTreeSet<String> = names("ui").into_iter().filter(|name| !names_dims(name)).collect();
    assert_eq!(silent, SILENT_ON_DIMS.map(str::to_owned).into());
}

/// A message that a person can act on names the types as their author did, in full, and never how
/// a size is encoded. Facts, dims, shapes and missing methods do so on the first line. A type
/// mismatch does below it: there rustc's first line is the same whatever the types.
#[test]
fn messages_speak_of_the_authors_names() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ui");
    for name in names("ui") {
        let source = std::fs::read_to_string(folder.join(format!("{name}.rs"))).unwrap();
        let message = std::fs::read_to_string(folder.join(format!("{name}.stderr"))).unwrap();
        assert_eq!(message.matches("error[").count(), 1, "{name}: one mistake, one error");
        for encoding in ["UInt<", "UTerm", "typenum", "the full type name has been written to"] {
            assert!(!message.contains(encoding), "{name}: {encoding}");
        }

        let first = message.lines().next().unwrap();
        let spoken: Vec<&str> = if first.contains("E0308") {
            let is_type = |line: &&str| {
                line.contains('`') && (line.contains("= note: expected ") || line.contains("   found "))
            };
            message.lines().filter(is_type).collect()
        } else if ["E0271", "E0277", "E0599"].iter().any(|code| first.contains(code)) {
            vec![first]
        } else {
            // The borrow checker speaks of bindings, a missing op of the op.
            continue;
        };
        assert!(!spoken.is_empty(), "{name}: {message}");
        // What an op left open is a `_`; then the other type says what it is about.
        let names_a_type = spoken
            .iter()
            .flat_map(|line| words(line))
            .any(|word| word.len() > 2 && source.contains(word) && word != "Tensor");
        assert!(names_a_type && !spoken.concat().contains("..."), "{name}: {spoken:?}");
    }
}
