//! Pages of lists.

use leeward_fabric::input::excerpt;
use leeward_records::schema::Id;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use leeward_problems::Problem;

/// Default number of items of a page.
const PAGE: usize = 100;
/// Largest number of items of a page.
pub const LARGEST_PAGE: usize = 1_000;

/// Query for a page of a list.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PageQuery {
    /// Largest number of items; default 100.
    #[schemars(range(min = 1, max = LARGEST_PAGE))]
    pub limit: Option<usize>,
    /// Value of `next` of the previous page.
    #[schemars(with = "Option<Id>")]
    pub after: Option<String>,
}

impl PageQuery {
    /// Number of items.
    ///
    /// # Errors
    /// [`Problem`] for a number out of range.
    pub fn limit(&self) -> Result<usize, Problem> {
        match self.limit {
            None => Ok(PAGE),
            Some(limit) if (1..=LARGEST_PAGE).contains(&limit) => Ok(limit),
            Some(limit) => {
                Err(Problem::field("limit", format!("{limit}: expected a number from 1 to {LARGEST_PAGE}")))
            }
        }
    }

    /// Position of the item before the page.
    ///
    /// # Errors
    /// [`Problem`] for an invalid position.
    pub fn after(&self) -> Result<Option<u64>, Problem> {
        let Some(after) = &self.after else { return Ok(None) };
        let wrong = || Problem::field("after", format!("`{}`: expected a value of `next`", excerpt(after)));
        Id::read(after).map(Some).ok_or_else(wrong)
    }
}

/// Page of a list by position.
pub(super) fn page<T, U>(
    all: &[T],
    query: &PageQuery,
    mut show: impl FnMut(&T) -> U,
) -> Result<Page<U>, Problem> {
    let (limit, after) = (query.limit()?, query.after()?);
    let from = after.map_or(0, |after| usize::try_from(after).unwrap_or(usize::MAX).saturating_add(1));
    let items: Vec<U> = all.iter().skip(from).take(limit).map(&mut show).collect();
    let last = from.saturating_add(items.len());
    Ok(Page { next: (last < all.len()).then(|| (last - 1).to_string()), items })
}

/// A page of a list.
#[derive(Serialize, JsonSchema)]
pub struct Page<T> {
    /// Items of the page.
    pub items: Vec<T>,
    /// Value for `after` to get the next page; null at the end.
    #[schemars(with = "Option<Id>")]
    pub next: Option<String>,
}

impl<T> Page<T> {
    /// Makes a page of the first `limit` entries. More entries mean that there is a next page.
    pub fn cut<'a, U>(
        entries: &'a [U],
        limit: usize,
        id: impl Fn(&U) -> u64,
        show: impl FnMut(&'a U) -> T,
    ) -> Page<T> {
        let shown = &entries[..limit.min(entries.len())];
        let next = shown.last().filter(|_| entries.len() > limit).map(|last| id(last).to_string());
        Page { items: shown.iter().map(show).collect(), next }
    }
}
