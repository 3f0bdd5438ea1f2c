//! The device model's memory is the host's only where a tensor was written. Alone in its program, for
//! it looks at what the program has resident.

#![cfg(all(test, target_os = "linux"))]
#![expect(clippy::unwrap_used, reason = "tests say with a panic what is wrong")]

use half::bf16;
use std::fs;
use tt_backend_tenstorrent::{Session, SessionOptions, Tenstorrent};
use tt_dsl::{Backend, Bf16, By, Dim, KvCache, Master, Tensor, Tokens, dim};

dim! { Rows = 8; Heads = 4; KvHeads = 2; Width = 64; Context = 4_194_304; Vocab = 8; Long = 262_144; }

const MIB: u64 = 1 << 20;

/// Bytes of this program that are in memory.
fn resident() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
}

#[test]
fn a_cache_takes_memory_as_it_fills_and_gives_it_back() {
    let options = SessionOptions { dram_bytes: 16 << 30, ..SessionOptions::fast() };
    let b = Tenstorrent::new(Session::open(options).unwrap());
    let before = resident();
    let since = || resident().saturating_sub(before);

    // 2 GiB of keys and values, in which eight positions are used. Pages may be of 2 MiB, and each
    // head's positions begin in pages of their own.
    let mut cache = KvCache::<Tenstorrent, KvHeads, Width, Context>::new(&b);
    let used = b.session().used_bytes();
    let x: Tensor<_, (Rows, By<Heads, Width>), Bf16> = b.zeros();
    let kv = Master::<(Rows, By<KvHeads, Width>), Bf16>::from_vec(vec![bf16::ONE; Rows::SIZE * 128]).unwrap();
    let kv = b.stage(&kv);
    let tokens = Tokens::<_, Rows, Vocab>::upload(&b, &[0; 8], 0).unwrap();
    let out = b.attention::<Rows, Heads, KvHeads, Width, Context>(&x, &kv, &kv, &mut cache, tokens.step());
    assert!(b.download(&out).unwrap().values().iter().all(|value| *value == bf16::ONE));
    assert_eq!(used, 0, "nothing is created before it is submitted");
    assert!(b.session().used_bytes() >= 2048 * MIB);
    assert!(since() < 64 * MIB, "{} MiB for eight positions", since() / MIB);

    // A place that was full is empty for its next tensor, and takes no memory for that.
    let ones = vec![bf16::ONE; Long::SIZE * 128];
    let master = Master::<(Long, By<KvHeads, Width>), Bf16>::from_vec(ones).unwrap();
    let full = b.stage(&master);
    drop(master);
    b.submit().unwrap();
    let filled = since();
    assert!(filled >= 64 * MIB, "{} MiB for a tensor of 64", filled / MIB);
    drop(full);
    b.submit().unwrap();
    let empty: Tensor<Tenstorrent, (Long, By<KvHeads, Width>), Bf16> = b.zeros();
    b.submit().unwrap();
    assert!(filled - since() >= 56 * MIB, "{} MiB given back of 64", (filled - since()) / MIB);
    assert!(b.download(&empty).unwrap().values().iter().all(|value| value.to_bits() == 0));
}
