//! Committed entries one by one, and the numbers that follow from entries and telemetry.

use leeward_fabric::{Nanos, ResourceId};
use leeward_ledger::{Demand, Entry, Fade, Sign};

use super::{Event, History, Model, Place, Window};

#[derive(Clone, Copy, Debug)]
pub struct Numbers {
    pub measured: Option<f64>,
    pub derived: bool,
    pub load: Option<f64>,
    pub residual: f64,
    pub expected_capacity: Option<f64>,
    pub share: f64,
    pub unreserved: f64,
    pub hot_since: Option<u64>,
}

/// Progress of an entry.
#[derive(Default)]
struct Course {
    /// Place of the start message, and time of the start.
    started: Option<(Place, u64)>,
    released: Option<Place>,
    /// Place and time at which the entry ends without a release.
    over: Option<(Place, u64)>,
}

impl Model {
    // ---- pending --------------------------------------------------------------------------------------

    /// Time up to which a resource's reports were accounted at an entry's commit, and the end of its next window.
    fn awaited(&self, resource: ResourceId, commit: Place) -> u64 {
        let before = Place { events: commit.events - 1, time: commit.time };
        let (until, interval) = (self.history(resource, before).until, self.settings.interval.0);
        until + interval * (commit.time.saturating_sub(until) / interval + 1)
    }

    /// True if the report that an entry waited for has come, or counts as missing.
    fn window_came(&self, windows: &[Window], resource: ResourceId, commit: Place, place: Place) -> bool {
        let came = |w: &Window| {
            w.place.events > commit.events || (w.place.events == commit.events && w.place.time > commit.time)
        };
        let arrived = windows.iter().any(|w| came(w) && w.until > commit.time);
        arrived || (self.sinbad() && self.awaited(resource, commit) + self.grace() <= place.time)
    }

    /// Fading part of work of rate `x` that starts at `at` (or ends there, if negative) and counts from `since`.
    fn fading(&self, history: &History, since: Place, at: u64, x: f64) -> f64 {
        let after = |place: Place| {
            place.events > since.events
                || (place.events == since.events && place.time >= since.time && place.events > 0)
        };
        let mut left = x;
        let mut seen = false;
        let mut downs = history.downs.iter().filter(|&&down| after(down)).peekable();
        for window in history.windows.iter().filter(|window| after(window.place)) {
            while downs.next_if(|down| **down <= window.place).is_some_and(|down| at <= down.time) {
                (left, seen) = (0.0, true);
            }
            let covered = window.until.saturating_sub(at.max(window.from)) as f64;
            // A window that reaches farther back shows the same part as an earlier window that covers the start.
            seen |= at <= window.from;
            let phi = if seen { 1.0 } else { covered / (window.until - window.from) as f64 };
            left = (1.0 - window.weight) * left + window.weight * x * (1.0 - phi);
        }
        if downs.any(|down| at <= down.time) { 0.0 } else { left }
    }

    /// The entries in the log before a place, with the places of their commits.
    fn entries(&self, place: Place) -> impl Iterator<Item = (usize, &Entry, Place)> {
        self.log[..place.events].iter().enumerate().filter_map(|(number, (time, event))| match event {
            Event::Commit(entry) => Some((number, entry, Place { events: number + 1, time: *time })),
            _ => None,
        })
    }

    /// The start of an entry (place of the message, time), and the place and time of its end, by release or without
    /// one.
    fn course(&self, number: usize, entry: &Entry, commit: Place, place: Place) -> Course {
        let fades = matches!(entry.fade, Fade::WithEstimator | Fade::After(_));
        let mut course = Course::default();
        if fades {
            course.started = entry.starts.map(|at| (commit, at.0));
        }
        let ttl = match entry.fade {
            Fade::After(ttl) => Some(commit.time + ttl.0),
            _ => None,
        };
        for (at, (time, event)) in self.log[..place.events].iter().enumerate().skip(number + 1) {
            let here = Place { events: at + 1, time: *time };
            match event {
                Event::Started(which, start) if *which == number && fades => {
                    let late = ttl.is_some_and(|ttl| ttl <= *time || ttl <= *start);
                    if course.started.is_none() && !late && course.released.is_none() {
                        course.started = Some((here, *start));
                    }
                }
                Event::Release(which) if *which == number && course.released.is_none() => {
                    course.released = Some(here);
                }
                _ => {}
            }
        }
        let own_end = match (course.started, &entry.demand) {
            (None, _) => ttl,
            (Some((_, at)), Demand::Elastic { bytes, .. })
                if self.faces[number] > 0.0 && entry.sign == Sign::Adds =>
            {
                Some(Nanos(at).plus(Nanos::from_secs_f64(bytes.0 as f64 / self.faces[number])).0)
            }
            _ => None,
        };
        if let Some(time) = own_end.filter(|&time| time <= place.time) {
            // The place lies after the last event before it. It precedes all events at its own time.
            let message = course.started.map_or(commit, |(message, _)| message);
            let events = self.log[..place.events].iter().take_while(|(at, _)| *at < time).count();
            let end = Place { events: events.max(message.events), time: time.max(message.time) };
            if course.released.is_none_or(|released| end.events < released.events) {
                course.over = Some((end, time));
            }
        }
        if course.started.is_none() && course.over.is_some() && course.released.is_none() {
            course.released = course.over.map(|(end, _)| end);
        }
        course
    }

    // ---- numbers --------------------------------------------------------------------------------------

    pub fn numbers(&self, resource: ResourceId, place: Place, flows: u32) -> Numbers {
        let (history, measured) = self.seen(resource, None, place);
        let capacity = self.capacity(resource, place.events);
        let (mut held, mut settling) = ([0.0; 2], [0.0; 2]);
        let (mut n, mut inelastic, mut means, mut rates, mut pressure) = (0.0, 0.0, 0.0, 0.0, 0.0);
        for (number, entry, commit) in self.entries(place) {
            let class = usize::from(matches!(entry.demand, Demand::Envelope { .. }));
            let course = self.course(number, entry, commit, place);
            for hop in entry.hops.iter().filter(|hop| hop.resource == resource) {
                let adds = entry.sign == Sign::Adds;
                let x = (self.faces[number] * hop.work).round() * if adds { 1.0 } else { -1.0 };
                let waits =
                    course.released.is_none() && !self.window_came(&history.windows, resource, commit, place);
                match course.started {
                    None if course.released.is_some() => {}
                    None if entry.fade == Fade::AtNextWindow && !waits => {}
                    None if adds => held[class] += x,
                    None => settling[class] += x,
                    Some((message, at)) => {
                        settling[class] += self.fading(&history, message, at, x);
                        let ended = course.over.or(course.released.map(|end| (end, end.time)));
                        if let Some((end, time)) = ended {
                            settling[class] += self.fading(&history, end, time.max(at), -x);
                        }
                    }
                }
                if course.released.is_some() || !adds {
                    continue;
                }
                match &entry.demand {
                    Demand::Elastic { bytes, flows, .. } => {
                        n += f64::from(*flows);
                        let d = (self.awaited(resource, commit) - commit.time) as f64 / 1e9;
                        pressure += if waits { (bytes.0 as f64 * hop.work / d).round() } else { 0.0 };
                    }
                    Demand::Stream { .. } => inelastic += x,
                    Demand::Envelope { rate_bps, .. } => {
                        inelastic += x;
                        means += x;
                        rates += (*rate_bps as f64 / 8.0 * hop.work).round();
                    }
                }
            }
        }
        let on = |class: usize, measured: f64| (measured + settling[class]).max(0.0) + held[class];
        let load = measured.map(|m| match history.guaranteed {
            None => (m + settling[0] + settling[1]).max(0.0) + held[0] + held[1],
            Some(guaranteed) => {
                let guaranteed = guaranteed.min(m);
                on(0, m - guaranteed) + on(1, guaranteed).max(means)
            }
        });
        let residual = load.map_or(0.0, |load| (self.settings.limit * capacity - load).max(0.0));
        let flows = f64::from(flows);
        let (mut hot_since, mut hot_until) = (None, 0);
        for window in history.windows.iter().filter(|window| !window.missed) {
            let went_down = |down: &&Place| **down <= window.place;
            let down = history.downs.iter().rev().find(went_down);
            let hot = window.load > self.settings.hot * self.capacity(resource, window.place.events);
            let joins = window.from <= hot_until + self.settings.interval.0 / 2;
            let since =
                hot_since.filter(|&(_, place): &(u64, Place)| joins && down.is_none_or(|down| place > *down));
            hot_since = hot.then(|| (since.map_or(window.from, |(from, _)| from), window.place));
            hot_until = window.until;
        }
        let hot_since = hot_since.filter(|(_, place)| history.downs.last().is_none_or(|down| place > down));
        let hot_since = hot_since.filter(|_| measured.is_some());
        Numbers {
            measured,
            derived: history.derived,
            load,
            residual,
            expected_capacity: measured.map(|m| (capacity - m - pressure).max(0.0)),
            share: residual.max(flows / (n + flows) * (capacity - inelastic).max(0.0)),
            unreserved: self.settings.reservable * capacity - rates,
            hot_since: hot_since.map(|(from, _)| from),
        }
    }
}
