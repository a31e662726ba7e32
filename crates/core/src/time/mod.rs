//! Time: when does this schedule fire?

mod calendar;
pub(crate) mod civil;
mod cron;
mod elapsed;
mod interval;
mod look;
mod merge;
mod slot;
mod times_of_day;
mod timetable;
mod walk;
pub mod zone;

pub use calendar::{Calendar, Window};
pub use cron::{Cron, Dialect};
pub use elapsed::Elapsed;
pub use interval::{Every, INTERVAL_MIN};
pub use look::LOOK_MAX;
pub(crate) use slot::Named;
pub use slot::{Slot, SlotKey};
pub use times_of_day::TimesOfDay;
pub(crate) use timetable::just_before;
pub use timetable::{Slots, SlotsBefore, Timetable};
pub use zone::{UnknownZone, Zone, Zones, bundled_version};
