//! The fast CPU kernels in the shadow of the plain ones, over a whole model: after every op, given
//! the same inputs, both must have the same result up to a few roundings.

#![cfg(test)]

use qwen35_model::checkpoint::Checkpoint;
use qwen35_model::{Model, Prefill, Sequence, Tiny};
use std::path::Path;
use tt_backend_cpu::{Cpu, CpuReference};
use tt_dsl::parity::Tolerance;
use tt_dsl::shadow::{Mode, Shadow};

#[test]
fn no_op_of_the_fast_backend_leaves_the_plain_one() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../goldens/tiny");
    let checkpoint = Checkpoint::open(&dir).unwrap();
    let verified = checkpoint.verify::<Tiny>().unwrap();
    let b = Shadow::new(CpuReference::with_threads(1), Cpu::with_threads(2), Mode::Local);
    let model = Model::<_, Tiny>::load(&b, &verified.weights(&b)).unwrap();
    b.clear();

    let mut sequence = Sequence::new(&b, &model);
    sequence.append(&[50, 78, 296, 259, 86, 488, 293, 273, 443, 288], Prefill::Buckets).unwrap();
    sequence.append(&[261], Prefill::Buckets).unwrap();

    let report = b.report();
    assert!(report.records.iter().any(|record| record.op == "gated_delta"));
    let finding = report.first_beyond(&Tolerance::default());
    assert!(finding.is_none(), "{}", finding.map(|finding| finding.to_string()).unwrap_or_default());
}
