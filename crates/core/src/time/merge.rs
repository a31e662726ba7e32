//! Several crons in one trigger: their hits in one order, the same slot only once.
//!
//! In: one walk per source, forwards or backwards. Out: hits, each with its source. Which of the hits in a gap runs is not
//! decided here (`timetable`).

use super::walk::{Hit, Source};

/// The hits of all sources in one order; of hits that are one slot, only the first listed.
#[derive(Debug)]
pub(crate) struct Merge<'t, W> {
    pub(crate) sources: &'t [Source],
    walks: Walks<W>,
}

#[derive(Debug)]
enum Walks<W> {
    /// By far the most common trigger: nothing to merge.
    One(W),
    /// Each walk with the hit that it offers next.
    Many(Vec<(W, Option<Hit>)>),
}

impl<'t, W: Iterator<Item = Hit>> Merge<'t, W> {
    pub(crate) fn new(sources: &'t [Source], start: impl Fn(&'t Source) -> W) -> Merge<'t, W> {
        let walks = match sources {
            [source] => Walks::One(start(source)),
            sources => Walks::Many(
                sources
                    .iter()
                    .map(|source| {
                        let mut walk = start(source);
                        let hit = walk.next();
                        (walk, hit)
                    })
                    .collect(),
            ),
        };
        Merge { sources, walks }
    }

    /// The next hit and the source that it comes from.
    pub(crate) fn next(&mut self, order: impl Fn(usize, &Hit) -> HitOrder) -> Option<(usize, Hit)> {
        let walks = match &mut self.walks {
            Walks::One(walk) => return Some((0, walk.next()?)),
            Walks::Many(walks) => walks,
        };
        let offered = walks.iter().enumerate().filter_map(|(index, (_, hit))| Some((index, (*hit)?)));
        let (first, hit) = offered.min_by_key(|(index, hit)| order(*index, hit))?;
        let zone = &self.sources[first].zone;
        for (index, (walk, offered)) in walks.iter_mut().enumerate() {
            let is_same = offered.is_some_and(|other| {
                let same_lost_time = other.local == hit.local && self.sources[index].zone == *zone;
                other.second == hit.second && (other.gap == 0) == (hit.gap == 0) && (hit.gap == 0 || same_lost_time)
            });
            if is_same {
                *offered = walk.next();
            }
        }
        Some((first, hit))
    }
}

/// The place of a hit among those of other sources: smaller comes first.
pub(crate) type HitOrder = (i64, bool, i64, usize);

/// By instant; at one instant the lost times before the clock's own, by local time, then as listed.
pub(crate) fn order_forwards(index: usize, hit: &Hit) -> HitOrder {
    if hit.gap == 0 { (hit.second, true, 0, index) } else { (hit.second, false, hit.local, index) }
}

/// The reverse, but of hits that are one slot still the first listed.
pub(crate) fn order_backwards(index: usize, hit: &Hit) -> HitOrder {
    if hit.gap == 0 { (-hit.second, false, 0, index) } else { (-hit.second, true, -hit.local, index) }
}
