//! Matchings of as many racks as can be, by augmenting paths over sets of bits.
//!
//! A destination's possible sources are words of 64 bits, so that a step of a search looks at 64 sources at once, and a matching
//! is kept while edges come and go. What a search in vain has seen can be part of no other, and is left out of those that follow.

/// No rack.
pub(super) const NONE: u32 = u32::MAX;

/// Edges between destinations and sources, and a matching along them. Made once for a number of racks and used again.
pub(super) struct Matcher {
    racks: usize,
    words: usize,
    /// Possible sources, `words` for each destination.
    edges: Vec<u64>,
    /// Sources that this search has not yet come to, and those that no search need come to.
    unseen: Vec<u64>,
    useful: Vec<u64>,
    source_of: Vec<u32>,
    destination_of: Vec<u32>,
    /// Destinations on the path and the source by which each is left.
    path: Vec<(u32, u32)>,
}

impl Matcher {
    /// A matcher without edges.
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

    /// Takes as edges the entries, row by row of destinations, that `keep` says. Pairs of the matching must stay edges.
    pub(super) fn set_edges(&mut self, by_destination: &[u64], keep: impl Fn(u64) -> bool) {
        let rows = by_destination.chunks_exact(self.racks);
        for (row, edges) in rows.zip(self.edges.chunks_exact_mut(self.words)) {
            for (entries, word) in row.chunks(64).zip(edges) {
                let bit = |at: usize, entry: u64| u64::from(keep(entry)) << at;
                *word = entries.iter().enumerate().fold(0, |bits, (at, &entry)| bits | bit(at, entry));
            }
        }
    }

    /// Takes an edge away, and the pair from the matching if it is there.
    pub(super) fn remove(&mut self, destination: usize, source: usize) {
        self.edges[destination * self.words + source / 64] &= !(1 << (source % 64));
        if self.source_of[destination] == source as u32 {
            self.source_of[destination] = NONE;
            self.destination_of[source] = NONE;
        }
    }

    /// The source of each destination, or [`NONE`].
    pub(super) fn source_of(&self) -> &[u32] {
        &self.source_of
    }

    /// Whether a source has no destination.
    pub(super) fn is_free(&self, source: usize) -> bool {
        self.destination_of[source] == NONE
    }

    /// Matches as many more racks as can be, keeping matched all that are. Of destinations that cannot all be, those that come first in
    /// `order` are. Returns how many are matched.
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

    /// Matches one more destination; false if that cannot be.
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
