//! The session: a device, its queue and its program cache, opened once.

use crate::bridge::ffi::{self, Batch, Command, DeviceOptions, FaultKind, Spec};
use crate::buffer::Origin;
use crate::error::Error;
use crate::recorder::Recorder;
use crate::stats::{OpTime, StagingStats};
use cxx::UniquePtr;
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tt_dsl::HostBytes;

/// How many fidelity phases the matrix unit runs, and so how much of each mantissa it multiplies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Fidelity {
    /// One phase: 5 bits of a weight by 7 of an activation.
    LoFi,
    /// Two: all of a weight by 7 bits of an activation.
    HiFi2,
    /// Three: all but the product of the two low parts.
    HiFi3,
    /// Four: everything.
    HiFi4,
}

impl Fidelity {
    /// The number of phases.
    pub fn phases(self) -> u8 {
        match self {
            Fidelity::LoFi => 1,
            Fidelity::HiFi2 => 2,
            Fidelity::HiFi3 => 3,
            Fidelity::HiFi4 => 4,
        }
    }
}

/// What the matrix unit accumulates in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Destination {
    /// f32: `fp32_dest_acc_en`.
    F32,
    /// bf16: rounds at every step of the unit.
    Bits16,
}

/// Which arithmetic the device model uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Numerics {
    /// The matrix unit's and the packer's, bit for bit, at the session's fidelity and destination.
    Tensix,
    /// f32 accumulation in the same order, rounding to nearest even on the store. Fidelity and
    /// destination do not matter.
    Fast,
}

/// How bf16 masters reach the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Staging {
    /// Tilized from the mapped bytes, bf16 to bf16.
    Bulk,
    /// Element by element through a float vector: what the bulk path replaced, kept to be measured
    /// against, and to see that the counter of such bytes counts.
    ElementByElement,
}

/// How a session is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionOptions {
    /// The device's memory.
    pub dram_bytes: u64,
    /// Fidelity of the matrix unit.
    pub fidelity: Fidelity,
    /// Destination of the matrix unit.
    pub dest: Destination,
    /// The arithmetic.
    pub numerics: Numerics,
    /// Threads that compute; 0 for one a processor.
    pub threads: u32,
    /// How masters are staged.
    pub staging: Staging,
    /// After how long a submit that does not finish is given up.
    pub timeout: Duration,
    /// Whether the model pretends that a device is there. Without one, opening fails.
    pub device_present: bool,
}

impl Default for SessionOptions {
    /// 8 GiB, HiFi4 into f32, the card's arithmetic, one thread a processor.
    fn default() -> Self {
        Self {
            dram_bytes: 8 << 30,
            fidelity: Fidelity::HiFi4,
            dest: Destination::F32,
            numerics: Numerics::Tensix,
            threads: 0,
            staging: Staging::Bulk,
            timeout: Duration::from_millis(50),
            device_present: true,
        }
    }
}

impl SessionOptions {
    /// The default with [`Numerics::Fast`], for models of full size.
    pub fn fast() -> Self {
        Self { numerics: Numerics::Fast, ..Self::default() }
    }

    pub(crate) fn for_bridge(&self) -> DeviceOptions {
        DeviceOptions {
            dram_bytes: self.dram_bytes,
            phases: self.fidelity.phases(),
            dest_f32: self.dest == Destination::F32,
            tensix: self.numerics == Numerics::Tensix,
            threads: self.threads,
            element_by_element: self.staging == Staging::ElementByElement,
            timeout_ms: u32::try_from(self.timeout.as_millis()).unwrap_or(u32::MAX),
            present: self.device_present,
        }
    }
}

/// A fault for the model to produce.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InjectedFault {
    /// The device has no more than so many bytes.
    OutOfMemoryAt(u64),
    /// So many submits go well, the next is refused.
    SubmitFailsAfter(u64),
    /// So many submits go well, the next does not finish.
    SubmitHangsAfter(u64),
    /// So many commands run, then the device is gone.
    DeviceLostAfter(u64),
    /// So many writes, staging calls and reads go well, the next fails.
    TransferFailsAfter(u64),
}

/// A device that is open, with its queue and program cache, and what has been recorded for it.
///
/// It is shared by the backend handle and by every tensor on it, so the device closes when the last
/// of them is gone, whatever the order.
pub struct Session {
    inner: Mutex<Inner>,
    options: SessionOptions,
}

struct Inner {
    driver: UniquePtr<ffi::Driver>,
    recorder: Recorder,
    /// An error has said that the device can no longer be relied on.
    lost: bool,
}

/// One crossing: what the driver is asked to do with a batch.
type Crossing<'a> = dyn FnMut(Pin<&mut ffi::Driver>, &Batch<'_>) -> Result<(), cxx::Exception> + 'a;

impl Session {
    /// Opens the device model.
    pub fn open(options: SessionOptions) -> Result<Arc<Self>, Error> {
        let driver = ffi::open_model(&options.for_bridge())
            .map_err(|exception| Error::NoDevice { reason: exception.what().to_owned() })?;
        Ok(Self::on(driver, options))
    }

    /// A session on a driver that is open.
    pub(crate) fn on(driver: UniquePtr<ffi::Driver>, options: SessionOptions) -> Arc<Self> {
        let inner = Inner { driver, recorder: Recorder::default(), lost: false };
        Arc::new(Self { inner: Mutex::new(inner), options })
    }

    /// Whether the session can still be used: not after [`Error::DeviceLost`] or [`Error::Timeout`].
    pub fn is_usable(&self) -> bool {
        !self.lock().lost
    }

    /// Frees the places kept for later outputs; they are made again where they are needed.
    pub fn free_kept_places(&self) {
        let mut inner = self.lock();
        let given = inner.recorder.give_up();
        inner.driver.pin_mut().release(&given);
    }

    /// Lets the driver be asked what only one kind of driver knows.
    #[cfg(feature = "ttnn")]
    pub(crate) fn with_driver<R>(&self, ask: impl FnOnce(Pin<&mut ffi::Driver>) -> R) -> R {
        ask(self.lock().driver.pin_mut())
    }

    /// How it was opened.
    pub fn options(&self) -> &SessionOptions {
        &self.options
    }

    /// What crossed so far.
    pub fn stats(&self) -> StagingStats {
        self.lock().driver.counters().into()
    }

    /// Time by operation so far, in the order of the operations' definition.
    pub fn op_times(&self) -> Vec<OpTime> {
        self.lock().driver.op_times().iter().map(OpTime::from).collect()
    }

    /// Bytes of device memory in use, with padding and with the places kept for later outputs.
    pub fn used_bytes(&self) -> u64 {
        self.lock().driver.counters().used_bytes
    }

    /// Tensors on the device, with the places kept for later outputs.
    pub fn live_tensors(&self) -> usize {
        self.lock().recorder.live()
    }

    /// Commands recorded and not yet submitted.
    pub fn recorded_commands(&self) -> usize {
        self.lock().recorder.commands.len()
    }

    /// Makes the model fail. For tests of what happens then.
    pub fn inject(&self, fault: InjectedFault) {
        let (kind, after) = match fault {
            InjectedFault::OutOfMemoryAt(bytes) => (FaultKind::OutOfMemory, bytes),
            InjectedFault::SubmitFailsAfter(n) => (FaultKind::Submit, n),
            InjectedFault::SubmitHangsAfter(n) => (FaultKind::Timeout, n),
            InjectedFault::DeviceLostAfter(n) => (FaultKind::DeviceLost, n),
            InjectedFault::TransferFailsAfter(n) => (FaultKind::Transfer, n),
        };
        self.lock().driver.pin_mut().inject(kind, after);
    }

    /// Hands over what is recorded, if there is anything.
    pub fn submit(&self) -> Result<(), Error> {
        let mut inner = self.lock();
        inner.recorder.take_fault().map_or(Ok(()), Err)?;
        if inner.recorder.is_empty() {
            return Ok(());
        }
        inner.hand_over(&mut |driver, batch| driver.submit(batch))
    }

    /// Hands over what is recorded and reads a tensor after it.
    pub(crate) fn read(&self, slot: u32, bytes: &mut [u8]) -> Result<(), Error> {
        let mut inner = self.lock();
        inner.recorder.take_fault().map_or(Ok(()), Err)?;
        inner.hand_over(&mut |driver, batch| driver.submit_and_read(batch, slot, bytes))
    }

    /// Writes a new tensor at once. Returns its slot.
    pub(crate) fn write(&self, spec: Spec, bytes: &[u8]) -> Result<u32, Error> {
        let mut inner = self.lock();
        let slot = inner.recorder.immediate(spec);
        let target = ffi::Allocation { slot, spec };
        match inner.retrying(&mut |inner| inner.driver.pin_mut().write(&target, bytes)) {
            Ok(()) => Ok(slot),
            Err(error) => {
                // The place may be an older tensor's; it goes with the failure.
                inner.driver.pin_mut().release(&[slot]);
                inner.recorder.vacate(slot);
                Err(error)
            }
        }
    }

    /// Records a tensor of zeros.
    pub(crate) fn create(&self, spec: Spec) -> u32 {
        self.lock().recorder.create(spec)
    }

    /// Records the copy of a master.
    pub(crate) fn stage(&self, spec: Spec, bytes: HostBytes) -> u32 {
        let mut inner = self.lock();
        let slot = inner.recorder.create(spec);
        inner.recorder.upload(slot, bytes);
        slot
    }

    /// Records a command whose outputs, of the given specs, follow its inputs. Returns their slots.
    pub(crate) fn record<const N: usize>(
        &self,
        mut command: Command,
        inputs: usize,
        outputs: [Spec; N],
    ) -> [u32; N] {
        let mut inner = self.lock();
        let slots = outputs.map(|spec| inner.recorder.output(spec));
        command.operands[inputs..inputs + N].copy_from_slice(&slots);
        inner.recorder.command(command);
        slots
    }

    /// Records an error of the recording; the next crossing returns it.
    pub(crate) fn fail(&self, error: Error) {
        self.lock().recorder.fail(error);
    }

    /// A buffer was dropped.
    pub(crate) fn retire(&self, slot: u32, spec: Spec, origin: Origin) {
        self.lock().recorder.retire(slot, spec, origin);
    }

    // What a panicking thread left here is consistent: no invariant spans a call that could panic.
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn hand_over(&mut self, crossing: &mut Crossing<'_>) -> Result<(), Error> {
        let result = self.retrying(&mut |inner| {
            let uploads = inner.recorder.uploads();
            let dead = inner.recorder.dead();
            let batch = Batch {
                allocations: &inner.recorder.allocations,
                uploads: &uploads,
                commands: &inner.recorder.commands,
                releases: &inner.recorder.releases,
                dead: &dead,
            };
            crossing(inner.driver.pin_mut(), &batch)
        });
        match result {
            Ok(()) => self.recorder.succeeded(),
            Err(_) => self.recorder.failed(),
        }
        result
    }

    /// Where memory ran out, places kept for later outputs are given up and the call is made again:
    /// a driver that had no room has done nothing.
    fn retrying(
        &mut self,
        call: &mut dyn FnMut(&mut Self) -> Result<(), cxx::Exception>,
    ) -> Result<(), Error> {
        let Err(exception) = call(self) else { return Ok(()) };
        let error = self.error(&exception);
        if !matches!(error, Error::OutOfMemory { .. }) {
            return Err(error);
        }
        let given = self.recorder.give_up();
        if given.is_empty() {
            return Err(error);
        }
        self.driver.pin_mut().release(&given);
        call(self).map_err(|exception| self.error(&exception))
    }

    /// The typed error of the driver's last exception.
    fn error(&mut self, exception: &cxx::Exception) -> Error {
        let error = self.typed(exception);
        self.lost |= matches!(error, Error::DeviceLost { .. } | Error::Timeout { .. });
        error
    }

    fn typed(&self, exception: &cxx::Exception) -> Error {
        let fault = self.driver.fault();
        let reason = exception.what().to_owned();
        let tensor = || self.recorder.describe(fault.slot);
        match fault.kind {
            FaultKind::NoDevice => Error::NoDevice { reason },
            FaultKind::OutOfMemory => Error::OutOfMemory {
                requested: fault.requested,
                free: fault.free,
                largest: fault.largest,
                tensor: tensor(),
            },
            FaultKind::DeviceLost => Error::DeviceLost { reason },
            FaultKind::Submit => Error::Submit { reason },
            FaultKind::Timeout => Error::Timeout { reason },
            FaultKind::Transfer => Error::Transfer { bytes: fault.requested, reason },
            FaultKind::Unbacked => Error::Unbacked { tensor: tensor() },
            _ => Error::Invalid { reason },
        }
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("options", &self.options).finish_non_exhaustive()
    }
}
