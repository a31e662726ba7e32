//! The pure decisions of `plan`: planning, catching up, re-planning, admission.

mod admission;
mod catch_up;
mod example;
mod plan;
mod replan;
mod support;
