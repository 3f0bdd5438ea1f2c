//! What was read back, used as if it were still on the device.

use tt_backend_tenstorrent::{Error, Tenstorrent};
use tt_dsl::{Backend, Bf16, Tensor, dim};

dim! { Rows = 4; Width = 8; }

fn read_and_added(b: &Tenstorrent, a: &Tensor<Tenstorrent, (Rows, Width), Bf16>) -> Result<(), Error> {
    let read = b.download(a)?;
    let _ = b.add::<Rows, Width>(a, &read);
    Ok(())
}

fn main() {}
