//! What crosses, in exact numbers.

use crate::tiny::{FULL_LAYERS, LAYERS, Loader, Tiny, Vocab, prompt};
use half::bf16;
use std::sync::Arc;
use std::time::Instant;
use tt_backend_tenstorrent::{Numerics, Session, SessionOptions, Staging, StagingStats, Tenstorrent};
use tt_dsl::{Backend, Bf16, Dim, HostBytes, Master, One, Tensor, Tokens, dim};

fn open(options: SessionOptions) -> Tenstorrent {
    Tenstorrent::new(Session::open(options).unwrap())
}

/// Tensors of a model: 14 a linear layer, 11 a full one, the embedding and the last norm.
const TENSORS: u64 = (14 * (LAYERS - FULL_LAYERS) + 11 * FULL_LAYERS + 2) as u64;

/// Commands of a step: the embedding, 17 a linear layer, 19 a full one, then last row, norm, head and
/// argmax.
const COMMANDS: u64 = (1 + 17 * (LAYERS - FULL_LAYERS) + 19 * FULL_LAYERS + 4) as u64;

#[test]
fn loading_stages_each_weight_once_in_one_call_a_layer() {
    let backend = open(SessionOptions::default());
    assert_eq!(backend.session().stats(), StagingStats { handle_resolutions: 3, ..Default::default() });
    let mut loader = Loader::new(&backend, 1);
    let _model = Tiny::load(&mut loader).unwrap();
    let calls = LAYERS as u64 + 1;
    assert_eq!(
        backend.session().stats(),
        StagingStats {
            handle_resolutions: 3,
            staging_calls: calls,
            h2d_writes: TENSORS,
            h2d_bytes: loader.bytes,
            submits: calls,
            allocations: TENSORS,
            device_nanos: backend.session().stats().device_nanos,
            ..Default::default()
        }
    );
    assert_eq!(loader.tensors, TENSORS);
}

#[test]
fn a_decode_step_crosses_twice_beside_its_layers() {
    let backend = open(SessionOptions::default());
    let model = Tiny::load(&mut Loader::new(&backend, 1)).unwrap();
    let mut states = model.states(&backend);
    let mut start = 0;
    let mut token = 7;
    let mut step = || {
        let before = backend.session().stats();
        token = model.next::<One>(&backend, &mut states, &[token], start).unwrap();
        start += 1;
        backend.session().stats() - before
    };
    // The first makes programs and places; the second still a place or two, where an output of the
    // first was alive across a submit.
    step();
    for _ in 0..5 {
        let found = step();
        let expected = StagingStats {
            handle_resolutions: 0,
            staging_calls: 0,
            h2d_writes: 1,
            h2d_bytes: 4 * 3,
            d2h_reads: 1,
            d2h_bytes: 4,
            f32_staged_bytes: 0,
            submits: LAYERS as u64,
            commands: COMMANDS,
            allocations: 0,
            program_cache_hits: COMMANDS,
            program_cache_misses: 0,
            device_nanos: found.device_nanos,
        };
        assert_eq!(found, expected);
    }
    // The logits instead of the token: still one read.
    let before = backend.session().stats();
    model.logits::<One>(&backend, &mut states, &[1], start).unwrap();
    let found = backend.session().stats() - before;
    assert_eq!((found.d2h_reads, found.d2h_bytes), (1, 4 * Vocab::SIZE as u64));
    assert_eq!((found.h2d_writes, found.h2d_bytes), (1, 4 * 3));
}

#[test]
fn uploads_that_no_command_reads_take_one_place() {
    let backend = open(SessionOptions::default());
    for i in 0..10 {
        let span = tt_dsl::Span::<One>::new(i, 1).unwrap();
        backend.upload_tokens(&[3], span).unwrap();
    }
    let stats = backend.session().stats();
    assert_eq!((stats.h2d_writes, stats.allocations), (10, 1));
    // One that is still to be read is not written over.
    let rows = (0..Vocab::SIZE).flat_map(|i| [bf16::from_f32((i % 256) as f32); Odd::SIZE]).collect();
    let table: Tensor<_, (Vocab, Odd), Bf16> = backend.stage(&Master::from_vec(rows).unwrap());
    let first = Tokens::<_, One, Vocab>::upload(&backend, &[1], 0).unwrap();
    let row = backend.embed(&first, &table);
    drop(first);
    let second = Tokens::<_, One, Vocab>::upload(&backend, &[2], 0).unwrap();
    assert_eq!(backend.download(&row).unwrap().values()[0], bf16::ONE);
    drop(second);
}

dim! { Odd = 33; Wide = 65; }

#[test]
fn the_counter_of_floats_counts_the_old_way() {
    let values: Vec<bf16> = (0..Odd::SIZE * Wide::SIZE).map(|i| bf16::from_bits(i as u16 + 0x3f80)).collect();
    let master = Master::<(Odd, Wide), Bf16>::from_vec(values).unwrap();
    for (staging, floats) in [(Staging::Bulk, 0), (Staging::ElementByElement, 2 * Odd::SIZE * Wide::SIZE)] {
        let backend = open(SessionOptions { staging, ..SessionOptions::default() });
        let tensor = backend.stage(&master);
        backend.submit().unwrap();
        assert_eq!(backend.session().stats().f32_staged_bytes, floats as u64);
        assert_eq!(backend.download(&tensor).unwrap().values(), master.values());
    }
}

#[test]
fn masters_come_back_bit_for_bit_from_odd_offsets() {
    let backend = open(SessionOptions::default());
    let size = Odd::SIZE * Wide::SIZE * 2;
    let file: Arc<Vec<u8>> = Arc::new((0..size + 3).map(|i| (i * 7 + 3) as u8).collect());
    let bytes = HostBytes::new(file.clone(), 3..size + 3).unwrap();
    let master = Master::<(Odd, Wide), Bf16>::from_bytes(bytes).unwrap();
    let tensor: Tensor<_, (Odd, Wide), Bf16> = backend.stage(&master);
    // The master's bytes are kept alive by what is recorded.
    drop(master);
    let back = backend.download(&tensor).unwrap();
    assert_eq!(back.bytes().as_slice(), &file[3..]);
}

#[test]
fn speed_is_useful() {
    let mut speeds = Vec::new();
    for numerics in [Numerics::Tensix, Numerics::Fast] {
        let backend = open(SessionOptions { numerics, ..SessionOptions::default() });
        let model = Tiny::load(&mut Loader::new(&backend, 1)).unwrap();
        model.generate(&backend, &prompt(9), 2).unwrap();
        let before = backend.session().stats();
        let start = Instant::now();
        let tokens = 40;
        model.generate(&backend, &prompt(9), tokens).unwrap();
        let wall = start.elapsed();
        let device = (backend.session().stats() - before).device_nanos;
        let speed = tokens as f64 / wall.as_secs_f64();
        let host = 1.0 - device as f64 / wall.as_nanos() as f64;
        println!(
            "{numerics:?}: {speed:.0} tok/s, {:.1} % of the wall outside the device's ops",
            host * 100.0
        );
        for time in backend.session().op_times() {
            println!("  {:13} {:6} calls {:9.1} us", time.op, time.calls, time.nanos as f64 / 1e3);
        }
        speeds.push(speed);
    }
    // Far below what an idle machine gives: this must hold on a busy one, too.
    assert!(speeds[0] > 10.0, "{speeds:?} tok/s");
}
