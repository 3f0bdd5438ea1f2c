//! Shapes, dtypes and conventions take no memory: everything typed is as large as its buffers.

use crate::naive::Naive;
use std::mem::{align_of, size_of};
use tt_dsl::{
    Backend, Bf16, By, Contiguous, ConvState, DeltaState, Dtype, F32, KvCache, LogitsF32, PlainNorm, Qkv,
    Shadow, Shape, Tensor, Traced, U32, View, ZeroCentredNorm, dim,
};

dim! {
    Heads = 8;
    HeadDim = 256;
    Hidden = 1024;
    Vocab = 248_320;
}

/// Asserts that `Typed` is `count` buffers of dtype `E` and nothing else.
fn is_buffers<Typed, B: Backend, E: Dtype>(count: usize) {
    assert_eq!(size_of::<Typed>(), count * size_of::<B::Buffer<E>>());
    assert_eq!(align_of::<Typed>(), align_of::<B::Buffer<E>>());
}

fn tensors_are_buffers<B: Backend, S: Shape>() {
    is_buffers::<Tensor<B, S, Bf16>, B, Bf16>(1);
    is_buffers::<Tensor<B, S, F32>, B, F32>(1);
    is_buffers::<Tensor<B, S, U32>, B, U32>(1);
    assert_eq!(size_of::<View<'_, B, S, Bf16, Contiguous>>(), size_of::<&B::Buffer<Bf16>>());
}

fn everything_is_buffers<B: Backend>() {
    tensors_are_buffers::<B, (Hidden,)>();
    tensors_are_buffers::<B, (Vocab, Hidden)>();
    tensors_are_buffers::<B, (Heads, HeadDim, Hidden)>();
    tensors_are_buffers::<B, (Heads, By<Heads, HeadDim>, Qkv<Heads, HeadDim, Heads, HeadDim>, Hidden)>();
    is_buffers::<ZeroCentredNorm<B, Hidden>, B, Bf16>(1);
    is_buffers::<PlainNorm<B, HeadDim>, B, F32>(1);
    is_buffers::<LogitsF32<B, Vocab>, B, F32>(1);
    is_buffers::<ConvState<B, Hidden, Heads>, B, Bf16>(1);
    is_buffers::<DeltaState<B, Heads, HeadDim, HeadDim>, B, F32>(1);
    is_buffers::<KvCache<B, Heads, HeadDim, Hidden>, B, Bf16>(2);
}

#[test]
fn types_take_no_memory() {
    everything_is_buffers::<Naive>();
    everything_is_buffers::<Traced<Naive>>();
    everything_is_buffers::<Shadow<Naive, Traced<Naive>>>();
}

/// With a backend whose buffers are vectors, a tensor is a vector.
#[test]
fn a_tensor_of_vectors_is_a_vector() {
    assert_eq!(size_of::<Tensor<Naive, (Vocab, Hidden), Bf16>>(), size_of::<Vec<half::bf16>>());
    assert_eq!(align_of::<Tensor<Naive, (Vocab, Hidden), F32>>(), align_of::<Vec<f32>>());
}
