//! Tables of things that come and go. A thing keeps its number while it is in the table.

/// A table whose numbers are used again.
#[derive(Debug)]
pub(super) struct Slots<T> {
    all: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Default for Slots<T> {
    fn default() -> Slots<T> {
        Slots { all: Vec::new(), free: Vec::new() }
    }
}

impl<T> Slots<T> {
    /// Adds a thing; returns its number.
    pub fn add(&mut self, thing: T) -> u32 {
        match self.free.pop() {
            Some(number) => {
                self.all[number as usize] = Some(thing);
                number
            }
            None => {
                self.all.push(Some(thing));
                (self.all.len() - 1) as u32
            }
        }
    }

    /// The thing with a number; `None` if it has been removed.
    pub fn get(&mut self, number: u32) -> Option<&mut T> {
        self.all.get_mut(number as usize)?.as_mut()
    }

    /// Removes a thing.
    pub fn remove(&mut self, number: u32) -> Option<T> {
        let thing = self.all.get_mut(number as usize)?.take();
        if thing.is_some() {
            self.free.push(number);
        }
        thing
    }

    /// Number of things.
    pub fn count(&self) -> usize {
        self.all.len() - self.free.len()
    }

    /// All things.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.all.iter().flatten()
    }
}
