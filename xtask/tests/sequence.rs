//! A sequence that is begun anew says what a new one says, bit for bit, on either backend.

#![cfg(test)]

use qwen35_model::checkpoint::Checkpoint;
use qwen35_model::generate::Transcript;
use qwen35_model::{Model, Prefill, Sequence, Tiny};
use std::path::Path;
use tt_backend_cpu::Cpu;
use tt_backend_tenstorrent::{Session, SessionOptions, Tenstorrent};
use tt_dsl::{Backend, LogitsF32};

const LONG: [u32; 10] = [50, 78, 296, 259, 86, 488, 293, 273, 443, 288];
const SHORT: [u32; 3] = [261, 50, 78];

fn bits<B: Backend, V: tt_dsl::Dim>(b: &B, logits: &LogitsF32<B, V>) -> Vec<u32> {
    b.download(logits.tensor()).unwrap().values().iter().map(|x| x.to_bits()).collect()
}

fn restarted_as_new<B: Backend>(b: &B) {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../goldens/tiny");
    let checkpoint = Checkpoint::open(&dir).unwrap();
    let model = Model::<B, Tiny>::load(b, &checkpoint.verify::<Tiny>().unwrap().weights(b)).unwrap();
    let expected = bits(b, &Sequence::new(b, &model).append(&SHORT, Prefill::Buckets).unwrap());

    let mut sequence = Sequence::new(b, &model);
    let other = bits(b, &sequence.append(&LONG, Prefill::Buckets).unwrap());
    assert_ne!(other, expected);
    sequence.restart();
    assert_eq!(sequence.position(), 0);
    assert_eq!(bits(b, &sequence.append(&SHORT, Prefill::Buckets).unwrap()), expected);

    let mut transcript = Transcript::new(b, &model);
    transcript.bring_to(&LONG).unwrap();
    let (logits, brought) = transcript.bring_to(&SHORT).unwrap();
    assert_eq!((brought.kept, brought.run, brought.dropped), (0, 3, 10));
    assert_eq!(bits(b, &logits), expected);
}

#[test]
fn on_the_cpu() {
    restarted_as_new(&Cpu::with_threads(2));
}

#[test]
fn on_the_device_model() {
    restarted_as_new(&Tenstorrent::new(Session::open(SessionOptions::fast()).unwrap()));
}
