//! What tests and the project's own commands need that is not Punctual. Nothing that is shipped asks for it.

mod apt;
pub mod conductor;
pub mod node;
pub mod postgres;
pub mod promtool;
pub mod proxy;
pub mod python;
pub mod shell;
pub mod tools;
