//! Optional sections of a scenario file. Each applies to one kind of work only.

use leeward_fabric::input::{InputError, Spanned};

/// Error for a section that needs files.
pub(super) const NO_FILES: &str =
    "applies to tasks that write files, and this scenario has none; leave it out";
/// Error for a field that needs blocks.
pub(super) const NO_COPIES: &str = "applies to copies of blocks, and this scenario places none; leave it out";
/// Error for re-placement without apps.
pub(super) const NO_APPS: &str = "only apps migrate: there is no `app` among the workloads";

/// Reason of the error for moves of tasks in a scenario without cells.
pub(super) const NO_TASKS: &str =
    "applies to the tasks of a cell: there is neither `cell` nor `tasks` among the workloads; leave it out";

/// Returns the value of an optional section of `file`.
///
/// # Arguments
/// * `applies`: whether the scenario has the work that the section is about, and the message if it has not
/// * `check`: returns the invalid field, empty for the whole section, and the message
///
/// # Errors
/// Returns an error if the section does not apply or is invalid.
pub(super) fn section<T: Clone>(
    file: &str,
    name: &str,
    read: Option<&Spanned<T>>,
    (applies, message): (bool, &str),
    check: impl FnOnce(&T) -> Result<(), (&'static str, String)>,
) -> Result<Option<T>, InputError> {
    let Some(read) = read else { return Ok(None) };
    if !applies {
        return Err(InputError::new(file, message).in_field(name).at(read));
    }
    check(&read.value).map_err(|(field, message)| {
        let field = if field.is_empty() { name.to_owned() } else { format!("{name}.{field}") };
        InputError::new(file, message).in_field(field).at(read)
    })?;
    Ok(Some(read.value.clone()))
}
