//! A decode step's matrix work at the 0.8B model's dims: on the CPU, and on the device model in both
//! numerics. Prints what all layers and the head would take, and what lies outside the device's ops.

use half::bf16;
use std::time::{Duration, Instant};
use tt_backend_cpu::Cpu;
use tt_backend_tenstorrent::{Error, Fidelity, Session, SessionOptions, Tenstorrent};
use tt_dsl::{Backend, Bf16, Dim, LengthError, LogitsF32, Master, One, Tensor, dim};

dim! {
    Hidden = 1024;
    Inner = 3584;
    Channels = 6144;
    Values = 2048;
    Vocab = 248_320;
}

const LAYERS: u32 = 24;
const RUNS: usize = 5;

type Weight<B, N, K> = Tensor<B, (N, K), Bf16>;
type Row<B> = Tensor<B, (One, Hidden), Bf16>;

/// The weights of a Gated DeltaNet layer that take time, and the head.
struct Weights<B: Backend> {
    qkv: Weight<B, Channels, Hidden>,
    z: Weight<B, Values, Hidden>,
    out: Weight<B, Hidden, Values>,
    gate: Weight<B, Inner, Hidden>,
    up: Weight<B, Inner, Hidden>,
    down: Weight<B, Hidden, Inner>,
    head: Weight<B, Vocab, Hidden>,
}

fn weight<B: Backend, N: Dim, K: Dim>(b: &B) -> Result<Weight<B, N, K>, LengthError> {
    let value = |i: usize| bf16::from_f32(((i * 2_654_435_761) % 2047) as f32 / 32_000.0 - 0.032);
    Ok(b.stage(&Master::from_vec((0..N::SIZE * K::SIZE).map(value).collect())?))
}

impl<B: Backend> Weights<B> {
    fn new(b: &B) -> Result<Self, LengthError> {
        Ok(Self {
            qkv: weight(b)?,
            z: weight(b)?,
            out: weight(b)?,
            gate: weight(b)?,
            up: weight(b)?,
            down: weight(b)?,
            head: weight(b)?,
        })
    }

    fn layer(&self, b: &B, h: &Row<B>) -> Row<B> {
        // What the projections make is not needed; only z goes on, to keep the chain one of rows.
        let _qkv = b.linear::<One, Hidden, Channels>(h, &self.qkv);
        let z = b.linear::<One, Hidden, Values>(h, &self.z);
        let h = b.add::<One, Hidden>(h, &b.linear(&z, &self.out));
        let inner = b.gated_linear::<One, Hidden, Inner>(&h, &self.gate, &self.up);
        b.add(&h, &b.linear(&inner, &self.down))
    }

    /// Layers and head; the read at the end waits for everything.
    fn step(&self, b: &B, x: &Row<B>) -> Result<(), B::Error> {
        let mut h = self.layer(b, x);
        b.submit()?;
        for _ in 1..LAYERS {
            h = self.layer(b, &h);
            b.submit()?;
        }
        let logits: LogitsF32<B, Vocab> = b.lm_head(&h, &self.head);
        b.download(&b.argmax(&logits)).map(drop)
    }
}

/// The best of some steps: the others shared the machine.
fn best<B: Backend>(b: &B, runs: usize) -> Result<Duration, Box<dyn std::error::Error>> {
    let weights = Weights::new(b)?;
    let x: Row<B> = b.stage(&Master::from_vec(vec![bf16::ONE; Hidden::SIZE])?);
    weights.step(b, &x)?;
    let mut best = Duration::MAX;
    for _ in 0..runs {
        let start = Instant::now();
        weights.step(b, &x)?;
        best = best.min(start.elapsed());
    }
    Ok(best)
}

fn device(options: SessionOptions) -> Result<Tenstorrent, Error> {
    Session::open(options).map(Tenstorrent::new)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut rows = vec![("cpu", best(&Cpu::new(), RUNS)?)];
    let fast = device(SessionOptions::fast())?;
    let start = Instant::now();
    rows.push(("tenstorrent, fast", best(&fast, RUNS)?));
    let stats = fast.session().stats();
    println!("commands of the fast run: {}, in all {:?}", stats.commands, start.elapsed());
    for fidelity in [Fidelity::LoFi, Fidelity::HiFi2, Fidelity::HiFi3, Fidelity::HiFi4] {
        let name = match fidelity {
            Fidelity::LoFi => "tenstorrent, LoFi",
            Fidelity::HiFi2 => "tenstorrent, HiFi2",
            Fidelity::HiFi3 => "tenstorrent, HiFi3",
            Fidelity::HiFi4 => "tenstorrent, HiFi4",
        };
        rows.push((name, best(&device(SessionOptions { fidelity, ..SessionOptions::default() })?, 2)?));
    }
    let cpu = rows[0].1.as_secs_f64();
    for (name, time) in rows {
        let seconds = time.as_secs_f64();
        println!(
            "{name:20} {:8.1} ms a step, {:6.2} tok/s, {:5.2} of the CPU's speed",
            seconds * 1e3,
            1.0 / seconds,
            cpu / seconds
        );
    }
    Ok(())
}
