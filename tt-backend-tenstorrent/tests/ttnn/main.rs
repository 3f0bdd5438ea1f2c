//! The ttnn driver where there is no tt-metal, and where there is.
#![cfg(test)]

#[cfg(feature = "ttnn")]
mod card;
mod signatures;

fn main() {
    let trials = signatures::trials();
    #[cfg(feature = "ttnn")]
    let trials = trials.into_iter().chain(card::trials()).collect();
    libtest_mimic::run(&libtest_mimic::Arguments::from_args(), trials).exit();
}
