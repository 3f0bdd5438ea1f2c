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

/// A message that a person can act on names the types as their author did, in full, and never how
/// a size is encoded. Facts, shapes and missing methods do so on the first line. A type mismatch
/// does below it: there rustc's first line is the same whatever the types.
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
        for line in spoken {
            let names_a_type = line
                .split(|c: char| !c.is_alphanumeric())
                .any(|word| word.len() > 2 && source.contains(word) && word != "Tensor");
            assert!(names_a_type && !line.contains("..."), "{name}: {line}");
        }
    }
}
