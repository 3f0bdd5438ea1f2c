//! What can fail: where commands are submitted and where data crosses.

/// An error of the Tenstorrent backend. Each says what was asked for, what was found, and where.
///
/// After every error the host masters are unchanged. After [`Error::DeviceLost`] and
/// [`Error::Timeout`] the session is lost and says so on every later call; after the others it stays
/// usable: the tensors that the failed list would have created do not exist, all others do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No device could be opened.
    #[error("no Tenstorrent device: {reason}")]
    NoDevice {
        /// What the driver said.
        reason: String,
    },
    /// The device's memory has no room. Nothing of the submitted list has happened.
    #[error(
        "out of device memory for a tensor of {tensor}: {requested} bytes requested, {free} free, \
         {largest} in one piece"
    )]
    OutOfMemory {
        /// Bytes that the tensor takes on the device, with its padding.
        requested: u64,
        /// Bytes that no tensor has.
        free: u64,
        /// Bytes of the largest hole.
        largest: u64,
        /// The tensor: dtype and sizes.
        tensor: String,
    },
    /// The queue refused a list. Nothing of it has happened; it was dropped.
    #[error("submit failed: {reason}")]
    Submit {
        /// What the driver said.
        reason: String,
    },
    /// The queue did not finish in time. The session is lost.
    #[error("submit timed out: {reason}")]
    Timeout {
        /// What the driver said.
        reason: String,
    },
    /// The device does not answer any more. The session is lost.
    #[error("device lost: {reason}")]
    DeviceLost {
        /// What the driver said.
        reason: String,
    },
    /// Bytes could not be moved.
    #[error("transfer failed: {reason}")]
    Transfer {
        /// Bytes that were to be moved.
        bytes: u64,
        /// What the driver said.
        reason: String,
    },
    /// A tensor is used whose creation failed earlier.
    #[error("a tensor of {tensor} is used, but the submit that was to create it failed")]
    Unbacked {
        /// The tensor: dtype and sizes.
        tensor: String,
    },
    /// A tensor of another session is used.
    #[error("{operation} was given a tensor of another session")]
    ForeignTensor {
        /// The operation, or the crossing.
        operation: String,
    },
    /// The driver found a command malformed: shapes that do not fit, a position past the context.
    #[error("command refused: {reason}")]
    Invalid {
        /// What the driver expected.
        reason: String,
    },
}
