//! Several crons in one trigger: their hits in one order, the same slot only once.
//!
//! In: one walk per source, forwards or backwards. Out: hits, each with its source. Which of the hits in a gap runs is not
//! decided here (`timetable`).

use super::walk::{Hit, Source};

/// The hits of all sources in one order; of hits that are one slot, only the first listed.
#[derive(Debug)]
pub(crate) struct Merge<'t, W> {
    pub(crate) sources: &'t [Source],
    direction: Direction,
    walks: Walks<W>,
}

/// Which way the walks go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    Forwards,
    Backwards,
}

#[derive(Debug)]
enum Walks<W> {
    /// By far the most common trigger: nothing to merge.
    One(W),
    /// Each walk with the hit that it offers next.
    Many(Vec<(W, Option<Hit>)>),
}

impl<'t, W: Iterator<Item = Hit>> Merge<'t, W> {
    /// Starts a walk for each source.
    pub(crate) fn new(sources: &'t [Source], direction: Direction, start: impl Fn(&'t Source) -> W) -> Merge<'t, W> {
        let with_offer = |source: &'t Source| {
            let mut walk = start(source);
            let offered = walk.next();
            (walk, offered)
        };
        let walks = match sources {
            [source] => Walks::One(start(source)),
            sources => Walks::Many(sources.iter().map(with_offer).collect()),
        };
        Merge { sources, direction, walks }
    }

    /// The next hit and the source that it comes from.
    pub(crate) fn next(&mut self) -> Option<(usize, Hit)> {
        let (sources, direction) = (self.sources, self.direction);
        let walks = match &mut self.walks {
            Walks::One(walk) => return Some((0, walk.next()?)),
            Walks::Many(walks) => walks,
        };
        let offers = walks.iter().enumerate().filter_map(|(index, (_, offered))| Some((index, (*offered)?)));
        let (chosen, hit) = offers.min_by_key(|(index, hit)| place(sources, direction, *index, hit))?;
        let mut first_listed = chosen;
        for (index, (walk, offered)) in walks.iter_mut().enumerate() {
            if offered.is_some_and(|other| is_one_slot(&sources[chosen], &hit, &sources[index], &other)) {
                first_listed = first_listed.min(index);
                *offered = walk.next();
            }
        }
        Some((first_listed, hit))
    }
}

/// Whether two hits are the same slot: one instant of the clocks, or one lost time of one clock.
fn is_one_slot(source: &Source, hit: &Hit, other_source: &Source, other: &Hit) -> bool {
    let is_lost = |hit: &Hit| hit.gap != 0;
    let same_lost_time = source.zone_listed == other_source.zone_listed && hit.local == other.local;
    hit.second == other.second && is_lost(hit) == is_lost(other) && (!is_lost(hit) || same_lost_time)
}

/// Where a hit stands among those of other sources; smaller comes first.
///
/// By instant; at one instant the lost times before the clocks' own, by local time, then by where their zone is first
/// listed. Backwards it is the reverse, but of clocks that agree it is still the first listed that speaks.
fn place(sources: &[Source], direction: Direction, index: usize, hit: &Hit) -> (i64, bool, i64, usize) {
    let is_own = hit.gap == 0;
    if is_own {
        return match direction {
            Direction::Forwards => (hit.second, true, 0, index),
            Direction::Backwards => (-hit.second, false, 0, index),
        };
    }
    let zone_listed = sources[index].zone_listed;
    match direction {
        Direction::Forwards => (hit.second, false, hit.local, zone_listed),
        Direction::Backwards => (-hit.second, true, -hit.local, usize::MAX - zone_listed),
    }
}
