//! The tensors that the types ask for: the whole list, written as a layer's author writes shapes.

use crate::config::Config;
use core::fmt;
use safetensors::Dtype;
use tt_dsl::{By, One, Qkv, Shape, Two};

/// Which dtypes a tensor may have in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DtypeRule {
    /// BF16, nothing else.
    Bf16,
    /// F32 as published, or BF16 as re-packed checkpoints have it, widened exactly.
    F32OrBf16,
}

impl DtypeRule {
    /// Whether the rule admits `dtype`.
    pub fn admits(self, dtype: Dtype) -> bool {
        match self {
            Self::Bf16 => dtype == Dtype::BF16,
            Self::F32OrBf16 => matches!(dtype, Dtype::F32 | Dtype::BF16),
        }
    }
}

impl fmt::Display for DtypeRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Bf16 => "BF16",
            Self::F32OrBf16 => "F32 or BF16",
        })
    }
}

/// A tensor that the types ask for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expected {
    /// Its name without the text model's prefix.
    pub name: String,
    /// Its sizes, outermost first.
    pub sizes: &'static [usize],
    /// Its shape as a layer writes it.
    pub notation: String,
    /// The dtypes it may have.
    pub dtypes: DtypeRule,
}

impl fmt::Display for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?} = {}", self.dtypes, self.sizes, self.notation)
    }
}

/// Every tensor of the text model of configuration `C`, in the order in which a pass reads them.
pub fn inventory<C: Config>() -> Vec<Expected> {
    let mut list = List::default();
    list.bf16::<(C::Vocab, C::Hidden)>("embed_tokens.weight");
    for index in 0..C::LAYERS {
        list.prefix = format!("layers.{index}.");
        list.bf16::<(C::Hidden,)>("input_layernorm.weight");
        if C::is_full_attention(index) {
            full_attention::<C>(&mut list);
        } else {
            linear_attention::<C>(&mut list);
        }
        list.bf16::<(C::Hidden,)>("post_attention_layernorm.weight");
        list.bf16::<(C::Intermediate, C::Hidden)>("mlp.gate_proj.weight");
        list.bf16::<(C::Intermediate, C::Hidden)>("mlp.up_proj.weight");
        list.bf16::<(C::Hidden, C::Intermediate)>("mlp.down_proj.weight");
    }
    list.prefix.clear();
    list.bf16::<(C::Hidden,)>("norm.weight");
    if !C::TIED {
        list.bf16::<(C::Vocab, C::Hidden)>("lm_head.weight");
    }
    list.tensors
}

fn full_attention<C: Config>(list: &mut List) {
    list.bf16::<(By<C::Heads, By<Two, C::HeadDim>>, C::Hidden)>("self_attn.q_proj.weight");
    list.bf16::<(By<C::KvHeads, C::HeadDim>, C::Hidden)>("self_attn.k_proj.weight");
    list.bf16::<(By<C::KvHeads, C::HeadDim>, C::Hidden)>("self_attn.v_proj.weight");
    list.bf16::<(C::Hidden, C::QDim)>("self_attn.o_proj.weight");
    list.bf16::<(C::HeadDim,)>("self_attn.q_norm.weight");
    list.bf16::<(C::HeadDim,)>("self_attn.k_norm.weight");
}

fn linear_attention<C: Config>(list: &mut List) {
    type Channels<C> = Qkv<
        <C as Config>::KeyHeads,
        <C as Config>::KeyDim,
        <C as Config>::ValueHeads,
        <C as Config>::ValueDim,
    >;
    type Values<C> = By<<C as Config>::ValueHeads, <C as Config>::ValueDim>;

    list.bf16::<(Channels<C>, C::Hidden)>("linear_attn.in_proj_qkv.weight");
    list.bf16::<(Values<C>, C::Hidden)>("linear_attn.in_proj_z.weight");
    list.bf16::<(C::ValueHeads, C::Hidden)>("linear_attn.in_proj_b.weight");
    list.bf16::<(C::ValueHeads, C::Hidden)>("linear_attn.in_proj_a.weight");
    list.bf16::<(Channels<C>, One, C::ConvKernel)>("linear_attn.conv1d.weight");
    list.f32::<(C::ValueHeads,)>("linear_attn.A_log");
    list.bf16::<(C::ValueHeads,)>("linear_attn.dt_bias");
    list.f32::<(C::ValueDim,)>("linear_attn.norm.weight");
    list.bf16::<(C::Hidden, Values<C>)>("linear_attn.out_proj.weight");
}

#[derive(Default)]
struct List {
    prefix: String,
    tensors: Vec<Expected>,
}

impl List {
    fn bf16<S: Shape>(&mut self, name: &str) {
        self.push::<S>(name, DtypeRule::Bf16);
    }

    fn f32<S: Shape>(&mut self, name: &str) {
        self.push::<S>(name, DtypeRule::F32OrBf16);
    }

    fn push<S: Shape>(&mut self, name: &str, dtypes: DtypeRule) {
        let name = format!("{}{name}", self.prefix);
        self.tensors.push(Expected { name, sizes: S::SIZES, notation: S::notation(), dtypes });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Qwen35_0_8B, Tiny};
    use std::collections::BTreeSet;

    fn elements(list: &[Expected]) -> usize {
        list.iter().map(|expected| expected.sizes.iter().product::<usize>()).sum()
    }

    #[test]
    fn the_published_model_has_the_published_numbers() {
        let list = inventory::<Qwen35_0_8B>();
        assert_eq!(list.len(), 320);
        assert_eq!(elements(&list), 752_393_024);
        let names: BTreeSet<_> = list.iter().map(|expected| &expected.name).collect();
        assert_eq!(names.len(), list.len());
    }

    #[test]
    fn shapes_read_as_they_are_written() {
        let list = inventory::<Tiny>();
        let of = |name: &str| list.iter().find(|expected| expected.name == name).unwrap().to_string();
        assert_eq!(
            of("layers.3.self_attn.q_proj.weight"),
            "BF16 [1024, 192] = (By<Heads, By<Two, HeadDim>>, Hidden)"
        );
        assert_eq!(of("layers.0.linear_attn.A_log"), "F32 or BF16 [4] = (ValueHeads,)");
        assert!(!list.iter().any(|expected| expected.name == "lm_head.weight"));
    }
}
