//! One seed, one history, every invariant.
//!
//! A simulation runs the engine's real nodes, loops and all, on the kernel that is shipped and a log that breaks on purpose,
//! on one thread and a clock of its own. A seed
//! decides everything: who asks for what, what goes wrong and when, and which of two things at one instant comes first. The
//! same seed gives the same history again.
//!
//! Three ledgers outside the store know what must be: the slots that schedules have had ([`oracle`]), the effects that the
//! world has seen ([`invariants::effects`]), and the answers that clients got ([`acks`]). Every commit is held against them.

mod acks;
mod chaos;
mod clients;
mod clock;
mod cluster;
mod faults;
mod hearing;
mod history;
mod invariants;
mod ledger;
mod log;
mod lost;
mod oracle;
mod random;
mod report;
mod runners;
mod schedules;
mod setup;
mod sim;
mod standby;
mod store;
mod timeline;
mod trace;
mod verbs;
mod writer;
mod zone_data;

pub use faults::{Fault, FaultCounts};
pub use history::{History, simulate};
pub use invariants::Violation;
pub use report::Report;
