//! Maximum matchings by augmenting paths over bit sets.
//!
//! The possible sources of a destination are words of 64 bits, so one step of a search examines 64 sources. The
//! matching stays valid while edges are added and removed. No later augmenting path can contain sources visited by a
//! failed search, so later searches skip them.
//!
//! Hand-written: the schedulers remove and add edges between searches and keep the matching. Graph libraries compute
//! each matching from an empty one.

/// Marks a rack without a partner.
pub(super) const NONE: u32 = u32::MAX;

/// Edges between destinations and sources, and a matching along them. Create it once for a number of racks and reuse
/// it.
pub(super) struct Matcher {
    racks: usize,
    words: usize,
    /// Bit set of possible sources, `words` words for each destination.
    edges: Vec<u64>,
    /// Sources that the current search has not visited, and sources that later searches may still use.
    unseen: Vec<u64>,
    useful: Vec<u64>,
    source_of: Vec<u32>,
    destination_of: Vec<u32>,
    /// Destinations on the path, each with the source after it.
    path: Vec<(u32, u32)>,
}

impl Matcher {
    /// Creates a matcher without edges.
    pub(super) fn new(racks: usize) -> Matcher {
        let words = racks.div_ceil(64);
        Matcher {
            racks,
            words,
            edges: vec![0; racks * words],
            unseen: vec![0; words],
            useful: vec![0; words],
            source_of: vec![NONE; racks],
            destination_of: vec![NONE; racks],
            path: Vec::with_capacity(racks),
        }
    }

    /// Makes edges of the entries for which `keep` returns true, row by row of destinations. Pairs of the matching must
    /// stay edges.
    pub(super) fn set_edges(&mut self, by_destination: &[u64], keep: impl Fn(u64) -> bool) {
        let rows = by_destination.chunks_exact(self.racks);
        for (row, edges) in rows.zip(self.edges.chunks_exact_mut(self.words)) {
            for (entries, word) in row.chunks(64).zip(edges) {
                let bit = |at: usize, entry: u64| u64::from(keep(entry)) << at;
                *word = entries.iter().enumerate().fold(0, |bits, (at, &entry)| bits | bit(at, entry));
            }
        }
    }

    /// Removes an edge, and its pair from the matching if present.
    pub(super) fn remove(&mut self, destination: usize, source: usize) {
        self.edges[destination * self.words + source / 64] &= !(1 << (source % 64));
        if self.source_of[destination] == source as u32 {
            self.source_of[destination] = NONE;
            self.destination_of[source] = NONE;
        }
    }

    /// Source of each destination, or [`NONE`].
    pub(super) fn source_of(&self) -> &[u32] {
        &self.source_of
    }

    /// Returns true if the source has no destination.
    pub(super) fn is_free(&self, source: usize) -> bool {
        self.destination_of[source] == NONE
    }

    /// Extends the matching to a maximum one; every matched rack stays matched. If some destinations cannot be matched,
    /// earlier ones in `order` win. Returns the number of matched destinations.
    pub(super) fn extend(&mut self, order: impl Iterator<Item = usize>) -> usize {
        self.useful.fill(u64::MAX);
        let mut matched = self.source_of.iter().filter(|&&source| source != NONE).count();
        for destination in order {
            if self.source_of[destination] == NONE {
                matched += usize::from(self.augment(destination));
            }
        }
        matched
    }

    /// Matches one more destination; returns false if that is impossible.
    fn augment(&mut self, root: usize) -> bool {
        self.unseen.copy_from_slice(&self.useful);
        self.path.clear();
        let mut destination = root;
        loop {
            let edges = &self.edges[destination * self.words..][..self.words];
            let next = edges.iter().zip(&self.unseen).position(|(edges, unseen)| edges & unseen != 0);
            if let Some(word) = next {
                let source = word * 64 + (edges[word] & self.unseen[word]).trailing_zeros() as usize;
                self.unseen[word] &= !(1 << (source % 64));
                self.path.push((destination as u32, source as u32));
                match self.destination_of[source] {
                    NONE => break,
                    taken => destination = taken as usize,
                }
            } else {
                match self.path.pop() {
                    Some((before, _)) => destination = before as usize,
                    None => {
                        self.useful.copy_from_slice(&self.unseen);
                        return false;
                    }
                }
            }
        }
        for &(destination, source) in &self.path {
            self.source_of[destination as usize] = source;
            self.destination_of[source as usize] = destination;
        }
        true
    }
}
