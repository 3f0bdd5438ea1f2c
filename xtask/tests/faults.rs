//! Generation with the trained model through faults of the device: what failed can be run again, and
//! gives the same tokens.

#![cfg(test)]

use qwen35_model::checkpoint::Checkpoint;
use qwen35_model::generate::{Generation, Stop};
use qwen35_model::sampling::Sampler;
use qwen35_model::{Model, SequenceError, Tiny};
use std::path::Path;
use std::time::Duration;
use tt_backend_tenstorrent::{Error, InjectedFault, Session, SessionOptions, Tenstorrent};
use tt_dsl::TokensError;
use xtask::golden::Golden;

const COUNT: usize = 12;

fn open() -> Tenstorrent {
    let options =
        SessionOptions { timeout: Duration::from_millis(5), threads: 2, ..SessionOptions::default() };
    Tenstorrent::new(Session::open(options).unwrap())
}

/// The trained checkpoint, the golden's first prompt, and the reference's tokens after it.
fn trained() -> (Checkpoint, Vec<u32>, Vec<u32>) {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../goldens/tiny");
    let prompt = Golden::open(&dir).unwrap().prompts.swap_remove(0);
    let tokens = prompt.tokens.into_iter().take(COUNT).collect();
    (Checkpoint::open(&dir).unwrap(), prompt.ids, tokens)
}

fn load(b: &Tenstorrent, checkpoint: &Checkpoint) -> Model<Tenstorrent, Tiny> {
    let verified = checkpoint.verify::<Tiny>().unwrap();
    Model::load(b, &verified.weights(b)).unwrap()
}

fn generate(b: &Tenstorrent, model: &Model<Tenstorrent, Tiny>, prompt: &[u32]) -> Result<Vec<u32>, Error> {
    let stop = Stop::after::<Tiny>(COUNT);
    let tokens = Generation::start(b, model, prompt, Sampler::greedy(), stop).and_then(Iterator::collect);
    tokens.map_err(|error| match error {
        SequenceError::Backend(error) | SequenceError::Tokens(TokensError::Backend(error)) => error,
        other => panic!("expected an error of the backend, found {other}"),
    })
}

/// In the prefill, in decode steps, in the crossing that reads.
#[test]
fn what_a_refused_submit_ended_can_be_run_again() {
    let (checkpoint, prompt, expected) = trained();
    let b = open();
    let model = load(&b, &checkpoint);
    assert_eq!(generate(&b, &model, &prompt), Ok(expected.clone()));
    for after in [0, 5, 17, 40] {
        b.session().inject(InjectedFault::SubmitFailsAfter(after));
        let error = generate(&b, &model, &prompt).unwrap_err();
        assert!(matches!(error, Error::Submit { .. }), "{error}");
        assert_eq!(generate(&b, &model, &prompt), Ok(expected.clone()), "after {after}");
    }
}

#[test]
fn what_a_lost_device_ended_can_be_run_again_on_another_session() {
    let (checkpoint, prompt, expected) = trained();
    for fault in [InjectedFault::DeviceLostAfter(300), InjectedFault::SubmitHangsAfter(20)] {
        let lost = open();
        let model = load(&lost, &checkpoint);
        lost.session().inject(fault);
        let error = generate(&lost, &model, &prompt).unwrap_err();
        assert!(matches!(error, Error::DeviceLost { .. } | Error::Timeout { .. }), "{error}");
        // The session says on every later call that it is lost.
        let error = generate(&lost, &model, &prompt).unwrap_err();
        assert!(matches!(error, Error::DeviceLost { .. }), "{error}");
        // The masters are the mapped file, which no fault touches.
        let b = open();
        let model = load(&b, &checkpoint);
        assert_eq!(generate(&b, &model, &prompt), Ok(expected.clone()), "{fault:?}");
    }
}
