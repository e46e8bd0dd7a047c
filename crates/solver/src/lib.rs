//! Linear and mixed-integer programs, solved by HiGHS (Huangfu, Hall: "Parallelizing the dual revised simplex method",
//! 2018). No other crate links HiGHS.
//!
//! ```
//! use leeward_solver::{Limits, Program};
//!
//! // Maximise x + 2 y with x + y <= 4, x + 3 y <= 6 and integer y.
//! let mut program = Program::new();
//! let x = program.add(-1.0, 0.0..=f64::INFINITY);
//! let y = program.add_integer(-2.0, 0.0..=f64::INFINITY);
//! program.constrain(f64::NEG_INFINITY..=4.0, &[(x, 1.0), (y, 1.0)]);
//! program.constrain(f64::NEG_INFINITY..=6.0, &[(x, 1.0), (y, 3.0)]);
//! let solution = program.minimise(Limits::default(), None)?;
//! assert_eq!((solution.value(x).round(), solution.value(y).round()), (3.0, 1.0));
//! assert_eq!(solution.gap, 0.0);
//! # Ok::<(), leeward_solver::SolverError>(())
//! ```
//!
//! A program without integer variables is a linear one. Rows are first divided by their largest coefficients, because
//! HiGHS tolerates an absolute violation of a row, regardless of the row's magnitude. The simplex method solves the
//! program without presolve, which takes longer than it saves for a few hundred rows.
//!
//! HiGHS drops small coefficients and has absolute tolerances, so its result may belong to another program. Each result
//! of a linear program is therefore proven against the given program, in twice the precision: its values satisfy all
//! rows, and the prices of its rows prove a bound on the objective that equals the objective. A result without a proof is
//! computed again in balanced units and refined; if no proof is found, [`SolverError::Unproven`] is returned, never a
//! number. The verdicts "infeasible" and "unbounded" are proven likewise. For integer variables, the rounded values are
//! checked against all rows.
//!
//! A search runs on one thread with a fixed seed, and its limit is a number of nodes, never a time. The same program
//! therefore always has the same solution. A solution of a search that reached a limit states its distance from the
//! optimum.

#[cfg(feature = "highs")]
mod certificate;
#[cfg(feature = "highs")]
mod extended;
#[cfg(feature = "highs")]
mod linear;
#[cfg(feature = "highs")]
mod scaling;
#[cfg(feature = "highs")]
mod search;

use std::ops::RangeInclusive;

/// A variable of a program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Variable(usize);

/// A minimisation problem: an objective, and constraints.
#[derive(Clone, Debug, Default)]
pub struct Program {
    columns: Vec<Column>,
    rows: Vec<Row>,
}

#[derive(Clone, Debug)]
struct Column {
    cost: f64,
    bounds: RangeInclusive<f64>,
    #[cfg_attr(not(feature = "highs"), expect(dead_code, reason = "only the solver reads it"))]
    integer: bool,
}

#[derive(Clone, Debug)]
struct Row {
    bounds: RangeInclusive<f64>,
    terms: Vec<(Variable, f64)>,
}

/// Limits of a search.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Number of nodes of the branch-and-bound tree.
    pub nodes: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { nodes: i32::MAX as u32 }
    }
}

/// The best solution found.
#[derive(Clone, PartialEq, Debug)]
pub struct Solution {
    values: Vec<f64>,
    /// Value of the objective.
    pub objective: f64,
    /// Lower bound on the objective of all solutions. For a linear program it is proven, and equals the objective to
    /// about 8 digits; a bound on a maximum is derived from it, not from the objective.
    pub bound: f64,
    /// Largest share of the objective that a better solution could save: zero for an optimum, infinite if unknown.
    pub gap: f64,
}

impl Solution {
    /// Value of a variable of the solved program.
    pub fn value(&self, variable: Variable) -> f64 {
        self.values[variable.0]
    }
}

/// The reason for a missing solution.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SolverError {
    /// No values satisfy all constraints.
    #[error("no values satisfy all constraints")]
    Infeasible,
    /// The objective has no lower bound.
    #[error("the objective is unbounded")]
    Unbounded,
    /// The search reached its limit before it found a solution.
    #[error("no solution within the limit of {nodes} nodes")]
    Limit {
        /// The limit.
        nodes: u32,
    },
    /// The solver's result could not be proven against the program, so it is not returned.
    #[error("the solver's result is not proven: {0}")]
    Unproven(String),
    /// The program was built without a solver.
    #[error("this build has no solver: `make build` makes one that has")]
    Absent,
    /// A cost, bound or coefficient is invalid, or the solver failed.
    #[error("the solver failed: {0}")]
    Failed(String),
}

impl Program {
    /// A program without variables.
    pub fn new() -> Program {
        Program::default()
    }

    /// Adds a variable within bounds; each unit adds `cost` to the objective.
    pub fn add(&mut self, cost: f64, bounds: RangeInclusive<f64>) -> Variable {
        self.column(cost, bounds, false)
    }

    /// Adds an integer variable.
    pub fn add_integer(&mut self, cost: f64, bounds: RangeInclusive<f64>) -> Variable {
        self.column(cost, bounds, true)
    }

    fn column(&mut self, cost: f64, bounds: RangeInclusive<f64>, integer: bool) -> Variable {
        self.columns.push(Column { cost, bounds, integer });
        Variable(self.columns.len() - 1)
    }

    /// Changes the bounds of a variable. Finite bounds make the proof of a solution independent of assumptions.
    pub fn bound(&mut self, variable: Variable, bounds: RangeInclusive<f64>) {
        self.columns[variable.0].bounds = bounds;
    }

    /// Bounds a sum of variables, each with its coefficient. A variable may occur at most once.
    pub fn constrain(&mut self, bounds: RangeInclusive<f64>, terms: &[(Variable, f64)]) {
        self.rows.push(Row { bounds, terms: terms.to_vec() });
    }

    /// Number of variables.
    pub fn len(&self) -> usize {
        self.columns.len()
    }

    /// True if there are no variables.
    pub fn is_empty(&self) -> bool {
        self.columns.is_empty()
    }

    /// Minimises the objective. `start` has a value for each variable, and the values satisfy all constraints; the
    /// search begins with them.
    ///
    /// # Errors
    /// A [`SolverError`] if there is no solution to return.
    pub fn minimise(&self, limits: Limits, start: Option<&[f64]>) -> Result<Solution, SolverError> {
        self.check()?;
        #[cfg(feature = "highs")]
        return if self.columns.iter().any(|column| column.integer) {
            search::minimise(self, limits, start)
        } else {
            linear::minimise(self)
        };
        #[cfg(not(feature = "highs"))]
        {
            let _ = (limits, start);
            Err(SolverError::Absent)
        }
    }

    /// Rejects costs and coefficients that are not finite, and bounds that are NaN.
    fn check(&self) -> Result<(), SolverError> {
        let bounded = |bounds: &RangeInclusive<f64>| !bounds.start().is_nan() && !bounds.end().is_nan();
        let columns = self.columns.iter().all(|column| column.cost.is_finite() && bounded(&column.bounds));
        let terms =
            self.rows.iter().flat_map(|row| &row.terms).all(|(_, coefficient)| coefficient.is_finite());
        if columns && terms && self.rows.iter().all(|row| bounded(&row.bounds)) {
            return Ok(());
        }
        Err(SolverError::Failed("a cost or coefficient is not finite, or a bound is not a number".into()))
    }
}
