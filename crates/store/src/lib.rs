//! Where Punctual keeps its state.
