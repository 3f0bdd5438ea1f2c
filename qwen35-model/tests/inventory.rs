//! The tensors that the types ask of a checkpoint, as a person reads them.

#![cfg(test)]

use qwen35_model::Tiny;
use qwen35_model::checkpoint::inventory;

/// Layer 0 is Gated DeltaNet, layer 3 full attention; the others repeat them.
#[test]
fn a_layer_of_each_kind_and_what_surrounds_them() {
    let lines: Vec<String> = inventory::<Tiny>()
        .into_iter()
        .filter(|tensor| {
            let layer = tensor.name.strip_prefix("layers.");
            layer.is_none_or(|rest| rest.starts_with("0.") || rest.starts_with("3."))
        })
        .map(|tensor| format!("{}: {tensor}", tensor.name))
        .collect();
    insta::assert_snapshot!(lines.join("\n"));
}
