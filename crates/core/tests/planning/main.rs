//! The pure decisions of `plan`: passing, catching up, re-planning, admission.

mod admission;
mod catch_up;
mod example;
mod next;
mod pass;
mod pass_edges;
mod pass_zone_data;
mod pause;
mod replan;
mod support;
mod view;
mod wake;
