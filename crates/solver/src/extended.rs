//! Sums of products with twice the precision of `f64` (Ogita, Rump, Oishi: "Accurate sum and dot product", SIAM Journal
//! on Scientific Computing 26, 2005).

/// A sum and its accumulated rounding error.
#[derive(Clone, Copy, Default)]
pub(crate) struct Sum {
    high: f64,
    low: f64,
    /// Sum of magnitudes.
    pub magnitude: f64,
}

impl Sum {
    /// Adds a product.
    pub fn add(&mut self, a: f64, b: f64) {
        let product = a * b;
        let error = a.mul_add(b, -product);
        let sum = self.high + product;
        let part = sum - self.high;
        self.low += (self.high - (sum - part)) + (product - part) + error;
        self.high = sum;
        self.magnitude += product.abs();
    }

    /// The sum, rounded once.
    pub fn value(self) -> f64 {
        self.high + self.low
    }

    /// The difference to a number, which may be infinite, rounded once.
    pub fn less(mut self, number: f64) -> f64 {
        if number.is_infinite() {
            return -number;
        }
        self.add(-1.0, number);
        self.value()
    }
}
