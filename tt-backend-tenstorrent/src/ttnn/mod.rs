//! Sessions on tt-metal's own library, behind the same interface as the device model.
//!
//! Compiled with the feature `ttnn`; without it [`open`] says so. `ON_A_CARD.md` tells how to build it and
//! what to run.

#[cfg(feature = "ttnn")]
pub(crate) mod bridge;

use crate::error::Error;
use crate::session::Session;
use std::sync::Arc;

/// Whether this build has the driver.
pub const AVAILABLE: bool = cfg!(feature = "ttnn");

/// Which compute configurations the groups of operations run with, in tt-metal's own vocabulary:
///
/// | group | `Accuracy` | `Performance` |
/// |---|---|---|
/// | projections, logits | HiFi4 | HiFi2, `math_approx_mode` |
/// | attention | HiFi4, exact exponentials | HiFi2, `math_approx_mode`, approximate exponentials |
/// | norms | HiFi4 | HiFi4 |
/// | convolution, recurrent state, selections | HiFi4 | HiFi4 |
///
/// All with `fp32_dest_acc_en` and `packer_l1_acc`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Policy {
    /// Every product in full.
    #[default]
    Accuracy,
    /// Fewer fidelity phases where the model can afford it.
    Performance,
}

/// What the driver does to spare the host; each can be left out, to see what it contributes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Levers {
    /// Device, queue and grid are looked up once; otherwise at every call.
    pub handles: bool,
    /// Masters are tilized in bulk, bf16 to bf16; otherwise element by element through f32.
    pub bulk_staging: bool,
    /// A layer's list is lowered as a whole; otherwise each command by itself.
    pub layer_batches: bool,
    /// Results stay on the device; otherwise each goes to the host and back.
    pub residency: bool,
    /// Mixers, gated MLPs and residual sums are lowered as one; otherwise operation by operation.
    pub fusion: bool,
    /// Outputs are allocated once; otherwise by every call.
    pub preallocation: bool,
    /// A list that comes again is replayed; otherwise it is lowered again.
    pub plans: bool,
}

impl Levers {
    /// Everything on.
    pub const ALL: Self = Self {
        handles: true,
        bulk_staging: true,
        layer_batches: true,
        residency: true,
        fusion: true,
        preallocation: true,
        plans: true,
    };

    /// What a hand-written eager step does: resident tensors, and one ttnn call after the other.
    pub const STRAIGHTFORWARD: Self =
        Self { layer_batches: false, fusion: false, preallocation: false, plans: false, ..Self::ALL };

    /// The way of the origin: nothing kept, nothing in bulk, read-backs between operations.
    pub const ORIGIN: Self =
        Self { handles: false, bulk_staging: false, residency: false, ..Self::STRAIGHTFORWARD };
}

/// How a session on the library is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TtnnOptions {
    /// Which device, as tt-metal counts them.
    pub device: u32,
    /// The library's mock of a card: all of the host's part, no kernel; what comes back means nothing.
    pub mock: bool,
    /// The compute configurations.
    pub policy: Policy,
    /// Positions that a rotary embedding knows where no cache says how many there are.
    pub positions: u32,
    /// What is left out, for measurements.
    pub levers: Levers,
}

impl Default for TtnnOptions {
    fn default() -> Self {
        Self { device: 0, mock: false, policy: Policy::Accuracy, positions: 8192, levers: Levers::ALL }
    }
}

/// The calls of one kind that a session made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallTime {
    /// The ttnn function.
    pub kind: String,
    /// How often it was called.
    pub calls: u64,
    /// Nanoseconds of the host in it.
    pub nanos: u64,
}

/// Bytes of device memory, as the library's own allocator counts them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryFigures {
    /// In use.
    pub allocated: u64,
    /// Not in use.
    pub free: u64,
    /// In the largest piece, over all banks.
    pub largest_free: u64,
}

/// Opens a session on the library.
#[cfg(feature = "ttnn")]
pub fn open(options: &TtnnOptions) -> Result<Arc<Session>, Error> {
    let levers = options.levers;
    let driver = bridge::ffi::open_ttnn(&bridge::ffi::TtnnOptions {
        device_id: options.device,
        mock: options.mock,
        performance: options.policy == Policy::Performance,
        context: options.positions,
        element_by_element: !levers.bulk_staging,
        fuse: levers.fusion,
        preallocate: levers.preallocation,
        keep_plans: levers.plans,
        keep_handles: levers.handles,
        whole_lists: levers.layer_batches,
        round_trips: !levers.residency,
    })
    .map_err(|exception| Error::NoDevice { reason: exception.what().to_owned() })?;
    Ok(Session::on(driver, crate::SessionOptions::default()))
}

/// Opens a session on the library.
#[cfg(not(feature = "ttnn"))]
pub fn open(_options: &TtnnOptions) -> Result<Arc<Session>, Error> {
    Err(Error::NoDevice { reason: MISSING.to_owned() })
}

/// What to do about a build without the driver.
pub const MISSING: &str = "this build has no ttnn driver: build it with `--features ttnn`, TT_METAL_HOME and TTNN_LIB_DIR \
                           (see tt-backend-tenstorrent/ON_A_CARD.md)";

/// The calls that a session made, by kind; none on the device model.
pub fn calls(session: &Session) -> Vec<CallTime> {
    #[cfg(feature = "ttnn")]
    return session.with_driver(|driver| {
        let times = bridge::ffi::ttnn_calls(&driver);
        times
            .into_iter()
            .map(|time| CallTime { kind: time.kind, calls: time.calls, nanos: time.nanos })
            .collect()
    });
    #[cfg(not(feature = "ttnn"))]
    {
        let _ = session;
        Vec::new()
    }
}

/// Frees what the driver keeps for lists that come again: plans, scratch tensors, constants. They are made
/// again where they are needed. Without an effect on the device model.
pub fn trim(session: &Session) -> Result<(), Error> {
    session.free_kept_places();
    #[cfg(feature = "ttnn")]
    session
        .with_driver(bridge::ffi::ttnn_trim)
        .map_err(|exception| Error::Invalid { reason: exception.what().to_owned() })?;
    Ok(())
}

/// The allocator's figures; none on the device model.
pub fn memory(session: &Session) -> Option<MemoryFigures> {
    #[cfg(feature = "ttnn")]
    return session.with_driver(|driver| {
        let figures = bridge::ffi::ttnn_memory(&driver).ok()?;
        let (allocated, free, largest_free) = (figures.allocated, figures.free, figures.largest_free);
        (allocated + free > 0).then_some(MemoryFigures { allocated, free, largest_free })
    });
    #[cfg(not(feature = "ttnn"))]
    {
        let _ = session;
        None
    }
}
