//! What each of the three changes buys, over the tensors of the 0.8B model:
//!
//! - masters tilized in bulk, bf16 to bf16, against element by element through a float vector;
//! - a session that holds its device, against one that looks it up at every call;
//! - one write a step, against as many small ones as the origin had.
//!
//! Ratios are printed at the end.

use criterion::Criterion;
use half::bf16;
use std::collections::HashMap;
use std::hint::black_box;
use std::sync::{Arc, LazyLock, Mutex};
use std::time::{Duration, Instant};
use tt_backend_tenstorrent::numerics::{tiled_len, tilize, tilize_element_by_element};
use tt_backend_tenstorrent::{Error, Session, SessionOptions, Tenstorrent};
use tt_dsl::{Backend, Bf16, Master, Span, Tensor, dim};

/// The weights of the 0.8B model by shape, and how many there are of each. Embeddings are left out:
/// they would be half of the time and say nothing new.
const SHAPES: [(&str, u32, u32, u32); 7] = [
    ("gate, up", 3584, 1024, 48),
    ("down", 1024, 3584, 24),
    ("q", 4096, 1024, 6),
    ("k, v", 512, 1024, 12),
    ("o, gdn out", 1024, 2048, 24),
    ("gdn qkv", 6144, 1024, 18),
    ("gdn z", 2048, 1024, 18),
];

/// Small uploads a token that the origin's profile counted.
const ORIGIN_UPLOADS: usize = 250;

/// Look-ups of a step of about a thousand calls, each with a device, a queue and a cache to find.
const CALLS: usize = 1000;

/// Steps whose one write is timed together.
const STEPS: u32 = 1000;

dim! { Mask = 1024; One = 1; }

/// The median of some runs.
fn median(runs: usize, mut run: impl FnMut()) -> Duration {
    let mut times: Vec<Duration> = (0..runs)
        .map(|_| {
            let start = Instant::now();
            run();
            start.elapsed()
        })
        .collect();
    times.sort();
    times[times.len() / 2]
}

fn ratio(what: &str, old: Duration, new: Duration) {
    println!(
        "{what:28} {:>12.1?} {:>12.1?}  {:>8.1} x",
        old,
        new,
        old.as_secs_f64() / new.as_secs_f64().max(1e-12)
    );
}

fn staging(criterion: &mut Criterion) -> (Duration, Duration) {
    let mut totals = (Duration::ZERO, Duration::ZERO);
    println!("{:28} {:>12} {:>12}  {:>10}", "staging, one tensor", "by element", "in bulk", "ratio");
    for (name, rows, cols, count) in SHAPES {
        let bytes: Vec<u8> = (0..rows as usize * cols as usize * 2).map(|i| (i * 31) as u8).collect();
        let mut tiles = vec![bf16::ZERO; tiled_len(rows, cols)];
        let old = median(3, || {
            black_box(tilize_element_by_element(rows, cols, &bytes, &mut tiles)).ok();
        });
        let new = median(9, || {
            black_box(tilize(rows, cols, &bytes, &mut tiles)).ok();
        });
        ratio(&format!("{name} {rows} x {cols}"), old, new);
        totals.0 += old * count;
        totals.1 += new * count;
        criterion.bench_function(&format!("tilize {rows} x {cols}"), |b| {
            b.iter(|| tilize(rows, cols, black_box(&bytes), &mut tiles));
        });
    }
    totals
}

/// A registry as the origin's: context, device and chip found by name at every call.
static REGISTRY: LazyLock<Mutex<HashMap<String, Arc<Session>>>> = LazyLock::new(Mutex::default);

fn look_up(name: &str) -> Option<Arc<Session>> {
    REGISTRY.lock().ok()?.get(name).cloned()
}

fn handles(criterion: &mut Criterion, session: &Arc<Session>) -> (Duration, Duration) {
    let names = ["context", "device 0", "device 0, queue 0"];
    for name in names {
        if let Ok(mut registry) = REGISTRY.lock() {
            registry.insert(name.to_owned(), Arc::clone(session));
        }
    }
    let with = || {
        for _ in 0..CALLS {
            for name in names {
                black_box(look_up(black_box(name)));
            }
        }
    };
    let without = || {
        for _ in 0..CALLS {
            black_box(black_box(session).options());
        }
    };
    criterion.bench_function("handles looked up", |b| b.iter(with));
    criterion.bench_function("handles held", |b| b.iter(without));
    (median(101, with), median(101, without))
}

fn writes(criterion: &mut Criterion, backend: &Tenstorrent) -> Result<(Duration, Duration), Error> {
    let span = Span::<One>::new(7, 1).map_err(|error| Error::Invalid { reason: error.to_string() })?;
    let row = Master::<(One, Mask), Bf16>::from_vec(vec![bf16::ONE; 1024])
        .map_err(|error| Error::Invalid { reason: error.to_string() })?;
    let many = || {
        for _ in 0..ORIGIN_UPLOADS {
            let tensor: Tensor<_, (One, Mask), Bf16> = backend.stage(&row);
            backend.submit().ok();
            black_box(&tensor);
        }
    };
    let one = || {
        black_box(backend.upload_tokens(&[42], span)).ok();
    };
    // What is timed below must not be a failure that is quick.
    drop(backend.upload_tokens(&[42], span)?);
    drop(backend.stage::<(One, Mask), Bf16>(&row));
    backend.submit()?;
    criterion.bench_function("uploads of a step, many", |b| b.iter(many));
    criterion.bench_function("uploads of a step, one", |b| b.iter(one));
    // A single write is shorter than what the clock can tell.
    let steps = || (0..STEPS).for_each(|_| one());
    Ok((median(31, many), median(31, steps) / STEPS))
}

fn main() -> Result<(), Error> {
    let mut criterion = Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(100))
        .measurement_time(Duration::from_millis(400))
        .configure_from_args();
    let session = Session::open(SessionOptions::fast())?;
    let backend = Tenstorrent::new(Arc::clone(&session));
    let staged = staging(&mut criterion);
    let held = handles(&mut criterion, &session);
    let written = writes(&mut criterion, &backend)?;
    println!("\n{:28} {:>12} {:>12}  {:>10}", "", "the old way", "ours", "ratio");
    ratio("all layers staged", staged.0, staged.1);
    ratio("handles of 1000 calls", held.0, held.1);
    ratio("host writes of a step", written.0, written.1);
    Ok(())
}
