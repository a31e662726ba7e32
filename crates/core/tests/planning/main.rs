//! The pure decisions of `plan`: planning, catching up, re-planning, admission.

mod admission;
mod catch_up;
mod catch_up_slots;
mod example;
mod next;
mod pass;
mod pass_zone_data;
mod plan;
mod replan;
mod support;
mod view;
