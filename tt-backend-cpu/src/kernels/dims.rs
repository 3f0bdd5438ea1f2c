//! The sizes of each operation, by name, and the checks that slices agree with them.

/// Asserts that a slice has the length its dims say.
pub(crate) fn check(what: &str, found: usize, expected: usize) {
    assert_eq!(found, expected, "length of {what}");
}

/// `out: rows × outputs = (x: rows × inputs) (w: outputs × inputs)^T`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinearDims {
    /// Rows of `x` and of the output.
    pub rows: usize,
    /// Columns of `x` and of `w`.
    pub inputs: usize,
    /// Rows of `w`, columns of the output.
    pub outputs: usize,
}

impl LinearDims {
    pub(crate) fn check(self, x: usize, w: usize, out: usize) {
        check("linear x", x, self.rows * self.inputs);
        check("linear w", w, self.outputs * self.inputs);
        check("linear out", out, self.rows * self.outputs);
    }
}

/// The sizes of a rotary embedding of `T × heads × head_dim`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RopeDims {
    /// Heads in a row.
    pub heads: usize,
    /// Values in a head.
    pub head_dim: usize,
    /// How many of them, from the first on, are rotated: even, at most `head_dim`.
    pub rotary: usize,
}

/// The sizes of an attention layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttentionDims {
    /// Query heads: a multiple of `kv_heads`.
    pub heads: usize,
    /// Key and value heads.
    pub kv_heads: usize,
    /// Values in a head.
    pub head_dim: usize,
    /// Positions the cache has room for.
    pub context: usize,
}

impl AttentionDims {
    /// Query heads that share a key head.
    pub(crate) fn group(self) -> usize {
        self.heads / self.kv_heads
    }
}

/// Which positions the rows of an input hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The position of the first row: so many are in the cache already.
    pub start: usize,
    /// Valid rows, at positions `start .. start + rows`.
    pub rows: usize,
}

/// The sizes of a causal depthwise convolution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConvDims {
    /// Valid rows of the input.
    pub rows: usize,
    /// Columns of the input and the output.
    pub channels: usize,
    /// Taps, at least one. The state holds one row less.
    pub kernel: usize,
}

/// The sizes of a gated delta rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeltaDims {
    /// Query and key heads.
    pub key_heads: usize,
    /// Value heads, each with a state: a multiple of `key_heads`.
    pub value_heads: usize,
    /// Values of a query or a key.
    pub key_dim: usize,
    /// Values of a value.
    pub value_dim: usize,
}

impl DeltaDims {
    /// The width of a row `[q | k | v]`.
    #[must_use]
    pub fn channels(self) -> usize {
        2 * self.key_heads * self.key_dim + self.value_heads * self.value_dim
    }

    /// The size of a value head's state.
    #[must_use]
    pub fn head_state(self) -> usize {
        self.key_dim * self.value_dim
    }

    /// Where the query, the key and the value of value head `head` begin in a row `[q | k | v]`.
    pub(crate) fn offsets(self, head: usize) -> (usize, usize, usize) {
        let key_head = head / (self.value_heads / self.key_heads);
        let keys = self.key_heads * self.key_dim;
        (key_head * self.key_dim, keys + key_head * self.key_dim, 2 * keys + head * self.value_dim)
    }

    pub(crate) fn check(self, t: usize, inputs: [usize; 3], state: usize, out: usize) {
        assert_eq!(self.value_heads % self.key_heads.max(1), 0, "value heads are a multiple of key heads");
        check("delta qkv", inputs[0], t * self.channels());
        check("delta beta", inputs[1], t * self.value_heads);
        check("delta g", inputs[2], t * self.value_heads);
        check("delta state", state, self.value_heads * self.head_state());
        check("delta out", out, t * self.value_heads * self.value_dim);
    }
}
