//! The bridge to the C++ drivers: the one place where Rust and C++ meet, and the only unsafe code.
//!
//! What crosses is plain: commands, specs and counters are shared structs, bytes are slices, and a
//! driver is an opaque object with one owner. A C++ exception becomes an `Err`; the facts of it are
//! then read with [`ffi::Driver::fault`].
#![expect(unsafe_code, reason = "cxx declares foreign functions in an unsafe block")]
#![expect(unreachable_pub, reason = "cxx makes every item of a bridge public")]

#[cxx::bridge(namespace = "tt")]
pub(crate) mod ffi {
    /// The element type of a device tensor.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    #[repr(u8)]
    enum DataType {
        Bf16,
        F32,
        U32,
    }

    /// How a device tensor lies in DRAM.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    #[repr(u8)]
    enum Page {
        /// Tiles of 32x32 in four faces of 16x16, tiles row-major, padded with zeros.
        Tile,
        /// Rows one after the other.
        RowMajor,
    }

    /// A device tensor: `batch` matrices of `rows` by `cols`.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    struct Spec {
        dtype: DataType,
        page: Page,
        batch: u32,
        rows: u32,
        cols: u32,
    }

    /// The operations. Operands are listed in the order of [`Command::operands`].
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    #[repr(u8)]
    enum Op {
        /// step, table, out
        Embed,
        /// x, w, out (bf16)
        Linear,
        /// x, w, out (f32)
        LmHead,
        /// a, b, out
        Add,
        /// x, w, out; dims: heads, width, run, stride, offset
        RmsNorm,
        /// gate, up, out
        Swiglu,
        /// step, cos, sin; dims: rotary
        Rotary,
        /// x, cos, sin, out; dims: heads, width, rotary
        Rope,
        /// q, k, v, cache k, cache v, step, out; dims: heads, kv heads, width, context
        Attention,
        /// x, gate, out; dims: heads, width, run, stride, offset
        SigmoidGate,
        /// x, w, state, step, out; dims: kernel
        CausalConv,
        /// a, b, a_log, dt_bias, beta, log_decay
        GdnGates,
        /// qkv, beta, log_decay, state, step, out; dims: key heads, key dim, value heads, value dim
        GatedDelta,
        /// o, z, w, out; dims: value heads, value dim
        GatedNorm,
        /// x, step, out
        LastRow,
        /// logits, out
        Argmax,
    }

    /// One operation of a recorded list.
    #[derive(Debug, Clone, Copy)]
    struct Command {
        op: Op,
        /// Slots; unused ones hold `u32::MAX`.
        operands: [u32; 7],
        dims: [u32; 5],
        /// Epsilon of a norm, theta of a rotary embedding.
        scalar: f64,
    }

    /// A tensor to be created, zeroed, before the list runs.
    #[derive(Debug, Clone, Copy)]
    struct Allocation {
        slot: u32,
        spec: Spec,
    }

    /// Bytes of a host master, row-major, on their way to a tensor.
    struct Upload<'a> {
        slot: u32,
        bytes: &'a [u8],
    }

    /// Everything that one crossing hands over, in the order in which it happens.
    struct Batch<'a> {
        allocations: &'a [Allocation],
        uploads: &'a [Upload<'a>],
        commands: &'a [Command],
        releases: &'a [u32],
        /// Outputs of this list that nobody reads after it; their places are kept. A driver need not
        /// make them where it has a call for several operations.
        dead: &'a [u32],
    }

    /// How a device is opened.
    #[derive(Debug, Clone, Copy)]
    struct DeviceOptions {
        dram_bytes: u64,
        /// Fidelity phases of the matrix unit, 1 to 4.
        phases: u8,
        /// The destination registers hold f32; otherwise bf16.
        dest_f32: bool,
        /// The matrix unit's arithmetic; otherwise f32 accumulation.
        tensix: bool,
        threads: u32,
        /// Stage bf16 through a float vector, element by element: what the bulk path replaced.
        element_by_element: bool,
        timeout_ms: u32,
        /// The device answers; otherwise opening it fails.
        present: bool,
    }

    /// What a driver threw last.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    #[repr(u8)]
    enum FaultKind {
        None,
        NoDevice,
        OutOfMemory,
        DeviceLost,
        Submit,
        Timeout,
        Transfer,
        Unbacked,
        Invalid,
    }

    /// The facts of a driver's last exception.
    #[derive(Debug, Clone, Copy)]
    struct FaultReport {
        kind: FaultKind,
        /// Bytes asked for, or to be moved.
        requested: u64,
        /// Bytes free in total.
        free: u64,
        /// Bytes of the largest free block.
        largest: u64,
        /// The tensor concerned.
        slot: u32,
        /// The command concerned, counted from the start of its list.
        command: u32,
    }

    /// A driver's counters since it was opened.
    #[derive(Debug, Clone, Copy, Default)]
    struct Counters {
        handle_resolutions: u64,
        staging_calls: u64,
        h2d_writes: u64,
        h2d_bytes: u64,
        d2h_reads: u64,
        d2h_bytes: u64,
        f32_staged_bytes: u64,
        submits: u64,
        commands: u64,
        allocations: u64,
        cache_hits: u64,
        cache_misses: u64,
        device_nanos: u64,
        used_bytes: u64,
    }

    /// Time spent in one kind of operation.
    #[derive(Debug, Clone, Copy)]
    struct OpTime {
        op: Op,
        calls: u64,
        nanos: u64,
    }

    unsafe extern "C++" {
        include!("tt-backend-tenstorrent/cpp/include/driver.hpp");

        type Driver;

        fn open_model(options: &DeviceOptions) -> Result<UniquePtr<Driver>>;
        fn submit(self: Pin<&mut Driver>, batch: &Batch) -> Result<()>;
        fn write(self: Pin<&mut Driver>, target: &Allocation, bytes: &[u8]) -> Result<()>;
        fn submit_and_read(self: Pin<&mut Driver>, batch: &Batch, slot: u32, bytes: &mut [u8]) -> Result<()>;
        fn release(self: Pin<&mut Driver>, slots: &[u32]);
        fn inject(self: Pin<&mut Driver>, kind: FaultKind, after: u64);
        fn fault(self: &Driver) -> FaultReport;
        fn counters(self: &Driver) -> Counters;
        fn op_times(self: &Driver) -> Vec<OpTime>;
    }

    unsafe extern "C++" {
        include!("tt-backend-tenstorrent/cpp/include/plain.hpp");

        fn plain_mvmul(a: &[u16], b: &[u16], dest: u32, phase: u8, dest_f32: bool) -> u32;
        fn plain_matmul(
            options: &DeviceOptions,
            m: u32,
            k: u32,
            n: u32,
            x: &[u16],
            w: &[u16],
            out: &mut [f32],
        );
        fn plain_matmul_scalar(
            options: &DeviceOptions,
            m: u32,
            k: u32,
            n: u32,
            x: &[u16],
            w: &[u16],
            out: &mut [f32],
        );
        fn plain_multiply(options: &DeviceOptions, a: &[u16], b: &[u16], dest: &mut [f32]);
        fn plain_add(options: &DeviceOptions, a: &[u16], b: &[u16], dest: &mut [f32]);
        fn plain_pack(options: &DeviceOptions, dest: &[f32], out: &mut [u16]);
        fn plain_tilize(rows: u32, cols: u32, bytes: &[u8], out: &mut [u16]);
        fn plain_untilize(rows: u32, cols: u32, tiles: &[u16], out: &mut [u8]);
        fn plain_stage_element_by_element(
            rows: u32,
            cols: u32,
            dtype: u8,
            bytes: &[u8],
            out: &mut [u16],
        ) -> u64;
    }
}

// SAFETY: a driver holds no thread-local state and no thread's locks; every call takes it by
// exclusive or shared reference, and the session keeps it behind a mutex.
unsafe impl Send for ffi::Driver {}
