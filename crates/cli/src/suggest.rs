//! Did you mean: the known name that is nearest to an unknown one.

pub(crate) use punctual_core::nearest;
