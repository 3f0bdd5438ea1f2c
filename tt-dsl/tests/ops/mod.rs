//! A backend that compiles and computes nothing, all but its last op.

macro_rules! every_op_but_argmax {
    () => {
        const NAME: &'static str = "card";
        type Buffer<E: Dtype> = Vec<E::Repr>;
        type Error = std::fmt::Error;

        fn stage<S: Shape, E: Dtype>(&self, _: &Master<S, E>) -> Tensor<Self, S, E> {
            unreachable!()
        }
        fn zeros<S: Shape, E: Dtype>(&self) -> Tensor<Self, S, E> {
            unreachable!()
        }
        fn submit(&self) -> Result<(), Self::Error> {
            unreachable!()
        }
        fn upload_tokens<T: Dim>(&self, _: &[u32], _: Span<T>) -> Result<Self::Buffer<U32>, Self::Error> {
            unreachable!()
        }
        fn download<S: Shape, E: Dtype>(&self, _: &Tensor<Self, S, E>) -> Result<Master<S, E>, Self::Error> {
            unreachable!()
        }
        fn embed<T: Dim, V: Dim, H: Dim>(
            &self,
            _: &Tokens<Self, T, V>,
            _: &Tensor<Self, impl Is<(V, H)>, Bf16>,
        ) -> Tensor<Self, (T, H), Bf16> {
            unreachable!()
        }
        fn linear<T: Dim, K: Dim, N: Dim>(
            &self,
            _: &Tensor<Self, impl Is<(T, K)>, Bf16>,
            _: &Tensor<Self, impl Is<(N, K)>, Bf16>,
        ) -> Tensor<Self, (T, N), Bf16> {
            unreachable!()
        }
        fn add<T: Dim, D: Dim>(
            &self,
            _: &Tensor<Self, impl Is<(T, D)>, Bf16>,
            _: &Tensor<Self, impl Is<(T, D)>, Bf16>,
        ) -> Tensor<Self, (T, D), Bf16> {
            unreachable!()
        }
        fn rms_norm<T: Dim, D: Dim>(
            &self,
            _: &Tensor<Self, impl Is<(T, D)>, Bf16>,
            _: &ZeroCentredNorm<Self, impl IsDim<D>>,
            _: f32,
        ) -> Tensor<Self, (T, D), Bf16> {
            unreachable!()
        }
        fn rms_norm_heads<T: Dim, H: Dim, D: Dim, L: Layout>(
            &self,
            _: View<'_, Self, impl Is<(T, By<H, D>)>, Bf16, L>,
            _: &ZeroCentredNorm<Self, impl IsDim<D>>,
            _: f32,
        ) -> Tensor<Self, (T, By<H, D>), Bf16> {
            unreachable!()
        }
        fn swiglu<T: Dim, I: Dim>(
            &self,
            _: &Tensor<Self, impl Is<(T, I)>, Bf16>,
            _: &Tensor<Self, impl Is<(T, I)>, Bf16>,
        ) -> Tensor<Self, (T, I), Bf16> {
            unreachable!()
        }
        fn rotary<T: Dim, R: Dim + MultipleOf<Two>>(&self, _: &Step<Self, impl IsDim<T>>, _: f64) -> Rotary<Self, T, R> {
            unreachable!()
        }
        fn rope<T: Dim, H: Dim, D: Dim + AtLeast<R>, R: Dim>(
            &self,
            _: &Tensor<Self, impl Is<(T, By<H, D>)>, Bf16>,
            _: &Rotary<Self, impl IsDim<T>, R>,
        ) -> Tensor<Self, (T, By<H, D>), Bf16> {
            unreachable!()
        }
        fn attention<T: Dim, H: Dim + MultipleOf<Kv>, Kv: Dim, D: Dim + TileAligned, Ctx: Dim>(
            &self,
            _: &Tensor<Self, impl Is<(T, By<H, D>)>, Bf16>,
            _: &Tensor<Self, impl Is<(T, By<Kv, D>)>, Bf16>,
            _: &Tensor<Self, impl Is<(T, By<Kv, D>)>, Bf16>,
            _: &mut KvCache<Self, impl IsDim<Kv>, impl IsDim<D>, Ctx>,
            _: &Step<Self, impl IsDim<T>>,
        ) -> Tensor<Self, (T, By<H, D>), Bf16> {
            unreachable!()
        }
        fn sigmoid_gate<T: Dim, H: Dim, D: Dim, L: Layout>(
            &self,
            _: &Tensor<Self, impl Is<(T, By<H, D>)>, Bf16>,
            _: View<'_, Self, impl Is<(T, By<H, D>)>, Bf16, L>,
        ) -> Tensor<Self, (T, By<H, D>), Bf16> {
            unreachable!()
        }
        fn causal_conv<T: Dim, C: Dim, K: Dim>(
            &self,
            _: &Tensor<Self, impl Is<(T, C)>, Bf16>,
            _: &Tensor<Self, impl Is<(C, One, K)>, Bf16>,
            _: &mut ConvState<Self, impl IsDim<C>, impl IsDim<K>>,
            _: &Step<Self, impl IsDim<T>>,
        ) -> Tensor<Self, (T, C), Bf16> {
            unreachable!()
        }
        fn gdn_gates<T: Dim, Hv: Dim>(
            &self,
            _: &Tensor<Self, impl Is<(T, Hv)>, Bf16>,
            _: &Tensor<Self, impl Is<(T, Hv)>, Bf16>,
            _: &Tensor<Self, impl Is<(Hv,)>, F32>,
            _: &Tensor<Self, impl Is<(Hv,)>, Bf16>,
        ) -> GdnGates<Self, T, Hv> {
            unreachable!()
        }
        fn gated_delta<T: Dim, Hk: Dim, Dk: Dim, Hv: Dim + MultipleOf<Hk>, Dv: Dim>(
            &self,
            _: &Tensor<Self, impl Is<(T, Qkv<Hk, Dk, Hv, Dv>)>, Bf16>,
            _: &GdnGates<Self, impl IsDim<T>, impl IsDim<Hv>>,
            _: &mut DeltaState<Self, impl IsDim<Hv>, impl IsDim<Dk>, impl IsDim<Dv>>,
            _: &Step<Self, impl IsDim<T>>,
        ) -> Tensor<Self, (T, By<Hv, Dv>), Bf16> {
            unreachable!()
        }
        fn gated_norm<T: Dim, Hv: Dim, Dv: Dim>(
            &self,
            _: &Tensor<Self, impl Is<(T, By<Hv, Dv>)>, Bf16>,
            _: &Tensor<Self, impl Is<(T, By<Hv, Dv>)>, Bf16>,
            _: &PlainNorm<Self, impl IsDim<Dv>>,
            _: f32,
        ) -> Tensor<Self, (T, By<Hv, Dv>), Bf16> {
            unreachable!()
        }
        fn last_row<T: Dim, D: Dim>(
            &self,
            _: &Tensor<Self, impl Is<(T, D)>, Bf16>,
            _: &Step<Self, impl IsDim<T>>,
        ) -> Tensor<Self, (One, D), Bf16> {
            unreachable!()
        }
        fn lm_head<H: Dim, V: Dim>(
            &self,
            _: &Tensor<Self, impl Is<(One, H)>, Bf16>,
            _: &Tensor<Self, impl Is<(V, H)>, Bf16>,
        ) -> LogitsF32<Self, V> {
            unreachable!()
        }
    };
}

pub(crate) use every_op_but_argmax;
