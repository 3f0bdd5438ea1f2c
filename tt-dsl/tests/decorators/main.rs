//! Backends that wrap backends, and the size of what they hold, on a naive backend with faults on
//! demand.

mod model;
mod naive;
mod shadow;
mod traced;
mod zero_cost;
