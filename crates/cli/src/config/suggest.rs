//! Did you mean: the known name that is nearest to an unknown one.

pub(super) use punctual_core::nearest;
