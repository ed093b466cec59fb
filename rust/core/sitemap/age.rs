//! The ages of lastmods in a few steps, for the histogram of a report.

use crate::sitemap::date::{Lastmod, Order};

const DAY: i64 = 86_400;
/// The steps in days before now. A lastmod less than a day ahead is not in the future: a date is
/// the midnight of another time zone.
pub const STEPS: [i64; 8] = [-1, 1, 7, 30, 90, 365, 730, 1_825];

/// The number of URLs: in the future, between each two steps, older than the last one, and without
/// a lastmod.
pub type Ages = [u32; STEPS.len() + 2];

/// The steps as times, in descending order; the last bound is that of no lastmod.
///
/// The unit is that of the values: [`Order`], or microseconds since 1970.
#[derive(Debug, Clone, Copy)]
pub struct AgeBounds([i64; STEPS.len() + 1]);

impl AgeBounds {
    /// The bounds for lastmods as they are written. `now` is in seconds since 1970.
    pub fn of_orders(now: i64) -> AgeBounds {
        AgeBounds::new(|days| {
            let bound = Lastmod::from_seconds(now - days * DAY);
            bound.map_or(Order::MIN + 1, |bound| bound.text(&mut [0; 20]).1)
        })
    }

    /// The bounds for microseconds since 1970.
    pub fn of_micros(now: i64) -> AgeBounds {
        AgeBounds::new(|days| now - days * DAY * 1_000_000)
    }

    fn new(bound: impl Fn(i64) -> i64) -> AgeBounds {
        let mut bounds = [i64::MIN + 1; STEPS.len() + 1];
        for (place, days) in bounds.iter_mut().zip(STEPS) {
            *place = bound(days);
        }
        AgeBounds(bounds)
    }

    /// Counts a lastmod; `i64::MIN` is none. Without branches: the ages of rows are random.
    #[inline]
    pub fn count(&self, lastmod: i64, ages: &mut Ages) {
        let newer = self.0.iter().map(|&bound| usize::from(lastmod < bound)).sum::<usize>();
        ages[newer] += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The step of a lastmod, by a comparison with each one.
    fn step(lastmod: i64, now: i64) -> usize {
        let age = now - lastmod;
        STEPS.iter().position(|days| age <= days * DAY).unwrap_or(STEPS.len())
    }

    #[test]
    fn lastmods_are_counted_at_every_step() {
        let now = 1_763_800_000;
        let (orders, micros) = (AgeBounds::of_orders(now), AgeBounds::of_micros(now * 1_000_000));
        let around = STEPS.iter().flat_map(|days| [-1, 0, 1].map(|s| now - days * DAY + s));
        for lastmod in around.chain([0, now, -62_135_596_800, 253_402_300_799]) {
            let (mut by_order, mut by_micros) = (Ages::default(), Ages::default());
            let order = Lastmod::from_seconds(lastmod).unwrap().text(&mut [0; 20]).1;
            orders.count(order, &mut by_order);
            micros.count(lastmod * 1_000_000, &mut by_micros);
            let mut wanted = Ages::default();
            wanted[step(lastmod, now)] = 1;
            assert_eq!((by_order, by_micros), (wanted, wanted), "{lastmod}");
        }
        // a date is its midnight; none is not old
        let mut ages = Ages::default();
        orders.count(Lastmod::from_days(0).unwrap().text(&mut [0; 20]).1, &mut ages);
        orders.count(i64::MIN, &mut ages);
        assert_eq!(ages[STEPS.len()..], [1, 1]);
        // a clock outside of the years that can be written
        AgeBounds::of_orders(i64::MAX / 4).count(0, &mut ages);
        assert_eq!(ages[STEPS.len()], 1);
    }
}
