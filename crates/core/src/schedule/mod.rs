//! Schedule: a rule that produces times, and what it says about carrying them out.

mod bounds;
mod policy;
mod trigger;

pub use bounds::Bounds;
pub use policy::{
    CatchUp, CatchUpMode, DstPolicy, GapPolicy, MaxDelay, Overlap, Policy, RepeatPolicy,
};
pub use trigger::{After, At, Crons, Immediate, OnEvent, Pass, Trigger, ZonedCron, trigger_forms};
