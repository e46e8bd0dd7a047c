//! Convex hulls of points over time, and the hull of all differences between two sets of points.
//!
//! The code compares slopes, not cross products: with finite times and finite work, slopes cannot become NaN.

/// A point: seconds, and work.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Point {
    pub x: f64,
    pub y: f64,
}

/// The slope from `a` to a later `b`.
pub(crate) fn slope(a: Point, b: Point) -> f64 {
    (b.y - a.y) / (b.x - a.x)
}

/// The rising part of the upper hull of points sorted by x: slopes strictly decrease, and all are above 0.
pub(crate) fn rising_hull(points: impl IntoIterator<Item = Point>, hull: &mut Vec<Point>) {
    hull.clear();
    for point in points {
        if hull.last().is_some_and(|last| point.y <= last.y) {
            continue;
        }
        while let Some(&last) = hull.last() {
            let below = last.x == point.x
                || hull.len() > 1 && slope(hull[hull.len() - 2], last) <= slope(last, point);
            if !below {
                break;
            }
            hull.pop();
        }
        hull.push(point);
    }
}

/// The lower hull of points with strictly increasing x: slopes strictly increase.
pub(crate) fn lower_hull(points: impl IntoIterator<Item = Point>, hull: &mut Vec<Point>) {
    hull.clear();
    for point in points {
        while let [.., before, last] = hull[..]
            && slope(before, last) >= slope(last, point)
        {
            hull.pop();
        }
        hull.push(point);
    }
}

/// A rising upper hull from x = 0 on, flat after its last point.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Hull {
    points: Vec<Point>,
}

/// A hull under construction. New points wait until their number reaches the number of points of the hull; one merge
/// then adds all waiting points. The cost of a point therefore does not grow with the hull.
#[derive(Default)]
pub(crate) struct HullBuilder {
    hull: Hull,
    waiting: Vec<Point>,
}

impl Default for Hull {
    fn default() -> Hull {
        Hull { points: vec![Point { x: 0.0, y: 0.0 }] }
    }
}

impl Hull {
    /// The hull of points sorted by x, the first at 0.
    pub fn of(points: impl IntoIterator<Item = Point>) -> Hull {
        let mut hull = Hull::default();
        rising_hull(points, &mut hull.points);
        hull
    }

    /// The points, from x = 0 on.
    pub fn points(&self) -> &[Point] {
        &self.points
    }

    /// The height at `x`, which must not be negative.
    pub fn at(&self, x: f64) -> f64 {
        let after = self.points.partition_point(|point| point.x <= x);
        let from = self.points[after - 1];
        match self.points.get(after) {
            Some(&to) => from.y + (to.y - from.y) * ((x - from.x) / (to.x - from.x)),
            None => from.y,
        }
    }

    /// True if a point lies on the hull or below it.
    pub fn covers(&self, point: Point) -> bool {
        point.y <= self.at(point.x)
    }
}

impl HullBuilder {
    /// The height at `x` so far, without the waiting points.
    pub fn at(&self, x: f64) -> f64 {
        self.hull.at(x)
    }

    /// Raises the hull to cover all `points`.
    pub fn cover(&mut self, points: &[Point]) {
        self.waiting.extend(points.iter().filter(|&&point| !self.hull.covers(point)));
        if self.waiting.len() >= self.hull.points.len() {
            self.merge_waiting();
        }
    }

    /// The hull of all points.
    pub fn finish(mut self) -> Hull {
        self.merge_waiting();
        self.hull
    }

    fn merge_waiting(&mut self) {
        self.waiting.extend_from_slice(&self.hull.points);
        self.waiting.sort_by(|a, b| a.x.total_cmp(&b.x).then(a.y.total_cmp(&b.y)));
        rising_hull(self.waiting.drain(..), &mut self.hull.points);
    }
}

/// The upper hull of all differences between a point of `to` and a point of `from`. `from` is a lower hull of earlier
/// points, and `to` a rising hull. The result is the Minkowski sum of `to` and the reflection of `from`: its edges are
/// the edges of both hulls, sorted by slope.
pub(crate) fn differences(from: &[Point], to: &[Point], out: &mut Vec<Point>) {
    let (Some(&latest), Some(&first)) = (from.last(), to.first()) else { return };
    let (mut start, mut end, mut from, mut to) = (latest, first, from, to);
    out.push(Point { x: end.x - start.x, y: end.y - start.y });
    loop {
        let from_slope = (from.len() > 1).then(|| slope(from[from.len() - 2], start));
        let to_slope = (to.len() > 1).then(|| slope(end, to[1]));
        match (from_slope, to_slope) {
            (None, None) => return,
            (Some(from_slope), to_slope) if to_slope.is_none_or(|to_slope| from_slope >= to_slope) => {
                from = &from[..from.len() - 1];
                start = from[from.len() - 1];
            }
            _ => {
                to = &to[1..];
                end = to[0];
            }
        }
        out.push(Point { x: end.x - start.x, y: end.y - start.y });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(rows: &[(f64, f64)]) -> Vec<Point> {
        rows.iter().map(|&(x, y)| Point { x, y }).collect()
    }

    #[test]
    fn a_rising_hull_drops_points_below_it_and_falling_ones() {
        let all = points(&[(0.0, 1.0), (0.0, 2.0), (1.0, 2.5), (2.0, 6.0), (3.0, 5.0), (4.0, 7.0)]);
        assert_eq!(Hull::of(all).points(), points(&[(0.0, 2.0), (2.0, 6.0), (4.0, 7.0)]));
    }

    #[test]
    fn the_hull_of_differences_is_the_hull_of_all_pairs() {
        let from = points(&[(0.0, 0.0), (1.0, 1.0), (2.0, 1.5), (3.0, 7.0)]);
        let to = points(&[(4.0, 8.0), (5.0, 11.0), (7.0, 12.0), (8.0, 19.0)]);
        let mut pairs: Vec<Point> = Vec::new();
        for a in &from {
            pairs.extend(to.iter().map(|b| Point { x: b.x - a.x, y: b.y - a.y }));
        }
        pairs.sort_by(|a, b| a.x.total_cmp(&b.x).then(a.y.total_cmp(&b.y)));
        let (mut lower, mut upper, mut hull) = (Vec::new(), Vec::new(), Vec::new());
        lower_hull(from, &mut lower);
        rising_hull(to, &mut upper);
        differences(&lower, &upper, &mut hull);
        assert_eq!(Hull::of(hull), Hull::of(pairs));
    }
}
