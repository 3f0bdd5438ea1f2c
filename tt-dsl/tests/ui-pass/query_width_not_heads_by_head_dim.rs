//! What `ui/query_width_not_heads_by_head_dim.rs` should have been.

use tt_dsl::{By, Dim, SameSize, dim};

dim! {
    Heads8 = 8;
    Width256 = 256;
    Width2048 = 2048;
}

trait Config {
    type Heads: Dim;
    type HeadDim: Dim;
    type QueryDim: Dim + SameSize<By<Self::Heads, Self::HeadDim>>;
}

enum Small {}

impl Config for Small {
    type Heads = Heads8;
    type HeadDim = Width256;
    type QueryDim = Width2048;
}

fn main() {}
