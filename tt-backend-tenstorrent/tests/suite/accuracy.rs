//! How accurate a matrix product is at each fidelity, as it was measured on another implementation of
//! the card: normal data, relative rms against f64.

use crate::random::Random;
use tt_backend_tenstorrent::numerics::{self, Arithmetic, MatmulDims};
use tt_backend_tenstorrent::{Destination, Fidelity};

const FIDELITIES: [Fidelity; 4] = [Fidelity::LoFi, Fidelity::HiFi2, Fidelity::HiFi3, Fidelity::HiFi4];

/// The published figures: destination, K, then LoFi to HiFi4.
const MEASURED: [(Destination, u32, [f64; 4]); 4] = [
    (Destination::F32, 1024, [2.7e-2, 3.9e-3, 3.0e-4, 3.2e-4]),
    (Destination::F32, 3584, [2.6e-2, 4.0e-3, 3.2e-4, 3.1e-4]),
    (Destination::Bits16, 1024, [2.2e-2, 2.4e-2, 2.1e-2, 2.4e-2]),
    (Destination::Bits16, 3584, [3.3e-2, 5.9e-2, 6.5e-2, 6.3e-2]),
];

/// The figures are of a few hundred outputs each, and so are ours.
const WITHIN: f64 = 0.25;

#[test]
fn the_table_of_fidelities() {
    let (m, n) = (16, 64);
    for (dest, k, measured) in MEASURED {
        let mut random = Random::new(u64::from(k));
        let x = random.normals((m * k) as usize, 1.0);
        let w = random.normals((n * k) as usize, 1.0);
        let exact: Vec<f64> = (0..m * n)
            .map(|i| {
                let (row, col) = ((i / n * k) as usize, (i % n * k) as usize);
                let pairs = x[row..row + k as usize].iter().zip(&w[col..col + k as usize]);
                pairs.map(|(x, w)| x.to_f64() * w.to_f64()).sum()
            })
            .collect();
        for (fidelity, expected) in FIDELITIES.into_iter().zip(measured) {
            let mut found = vec![0.0; exact.len()];
            numerics::matmul(Arithmetic::tensix(fidelity, dest), MatmulDims { m, k, n }, &x, &w, &mut found)
                .unwrap();
            let square = |v: f64| v * v;
            let error: f64 = found.iter().zip(&exact).map(|(f, e)| square(f64::from(*f) - e)).sum();
            let rms = (error / exact.iter().copied().map(square).sum::<f64>()).sqrt();
            println!("{dest:?} K={k} {fidelity:?}: {rms:.2e}, published {expected:.1e}");
            assert!(
                (rms / expected - 1.0).abs() < WITHIN,
                "{dest:?}, K = {k}, {fidelity:?}: {rms:.2e} for {expected:.2e}"
            );
        }
    }
}
