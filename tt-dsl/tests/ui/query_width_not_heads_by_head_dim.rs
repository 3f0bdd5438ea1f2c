//! A configuration whose query width is not heads x head width.

use tt_dsl::{By, Dim, SameSize, dim};

dim! {
    Heads8 = 8;
    Width256 = 256;
    Width2048 = 2000;
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
