//! The ttnn driver where there is no tt-metal, and where there is.
#![cfg(test)]

#[cfg(feature = "ttnn")]
mod card;
mod signatures;

fn main() {
    #[allow(unused_mut)]
    let mut trials = signatures::trials();
    #[cfg(feature = "ttnn")]
    trials.extend(card::trials());
    libtest_mimic::run(&libtest_mimic::Arguments::from_args(), trials).exit();
}
