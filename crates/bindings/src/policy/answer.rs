//! Answers of Python policies: hosts by number or name, scores of all hosts, or None.

use leeward_fabric::{Fabric, HostId};
use pyo3::buffer::{Element, PyUntypedBuffer};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyByteArray, PyBytes, PyFloat, PyString};

/// Most items of a sequence to read; a longer one has no end, or is a mistake.
const MOST_ITEMS: usize = 10_000_000;

/// An answer to a request.
pub enum Answer {
    /// The policy declines the request.
    Declined,
    /// Hosts. A number that is no host's is `NO_HOST`.
    Hosts(Vec<HostId>),
    /// Scores; more is better.
    Scores(Vec<f64>),
}

/// Number of no host.
const NO_HOST: HostId = HostId(u32::MAX);

/// Reason for which an answer cannot be read.
pub enum Unreadable {
    /// Python raised an exception.
    Raised(PyErr),
    /// The answer has a wrong form.
    Form(String),
}

impl From<PyErr> for Unreadable {
    fn from(error: PyErr) -> Unreadable {
        Unreadable::Raised(error)
    }
}

/// Numbers of an array: whole ones are hosts, others are scores.
enum Numbers {
    Whole(Vec<i64>),
    Scores(Vec<f64>),
}

impl Numbers {
    fn into_answer(self) -> Answer {
        match self {
            Numbers::Whole(numbers) => Answer::Hosts(numbers.into_iter().map(host).collect()),
            Numbers::Scores(scores) => Answer::Scores(scores),
        }
    }

    /// An answer for each row of a table with at least one column.
    fn into_rows(self, columns: usize) -> Vec<Answer> {
        match self {
            Numbers::Whole(numbers) => numbers
                .chunks(columns)
                .map(|row| Answer::Hosts(row.iter().copied().map(host).collect()))
                .collect(),
            Numbers::Scores(scores) => {
                scores.chunks(columns).map(|row| Answer::Scores(row.to_vec())).collect()
            }
        }
    }
}

fn host(number: i64) -> HostId {
    u32::try_from(number).map_or(NO_HOST, HostId)
}

/// Reads the answer to one request.
///
/// # Errors
/// The answer is of another form, or Python raised an exception.
pub fn read(answer: &Bound<'_, PyAny>, fabric: &Fabric) -> Result<Answer, Unreadable> {
    if answer.is_none() {
        return Ok(Answer::Declined);
    }
    if is_text(answer) {
        return Err(unexpected(answer, fabric));
    }
    if let Ok(buffer) = PyUntypedBuffer::get(answer)
        && let Some(numbers) = numbers(answer.py(), &buffer)?
    {
        return Ok(numbers.into_answer());
    }
    // An array of another type, such as of names, or a column of a data frame.
    if answer.hasattr("tolist")? {
        return read_items(&answer.call_method0("tolist")?, fabric);
    }
    read_items(answer, fabric)
}

/// Reads the answers to a batch of requests: a table with a row for each, or a sequence with an answer to each.
///
/// # Errors
/// The answer is of another form, or Python raised an exception.
pub fn read_batch(
    answer: &Bound<'_, PyAny>,
    fabric: &Fabric,
    requests: usize,
) -> Result<Vec<Answer>, Unreadable> {
    if answer.is_none() {
        return Ok((0..requests).map(|_| Answer::Declined).collect());
    }
    if is_text(answer) {
        return Err(unexpected(answer, fabric));
    }
    if let Ok(buffer) = PyUntypedBuffer::get(answer)
        && let [rows, columns] = *buffer.shape()
        && let Some(numbers) = numbers(answer.py(), &buffer)?
    {
        if rows != requests {
            let message = format!("{rows} rows: expected one for each of {requests} requests");
            return Err(Unreadable::Form(message));
        }
        if columns == 0 {
            return Ok((0..rows).map(|_| Answer::Hosts(Vec::new())).collect());
        }
        return Ok(numbers.into_rows(columns));
    }
    let answers = items(answer, fabric)?;
    if answers.len() != requests {
        let message = format!("{} answers: expected one for each of {requests} requests", answers.len());
        return Err(Unreadable::Form(message));
    }
    answers.iter().map(|answer| read(answer, fabric)).collect()
}

/// Reads numbers or names of hosts.
///
/// # Errors
/// The object has another form, or Python raised an exception.
pub fn read_hosts(hosts: &Bound<'_, PyAny>, fabric: &Fabric) -> Result<Vec<HostId>, Unreadable> {
    match read(hosts, fabric)? {
        Answer::Hosts(hosts) => match hosts.iter().find(|host| host.index() >= fabric.host_count()) {
            None => Ok(hosts),
            Some(_) => {
                let last = fabric.host_count().saturating_sub(1);
                Err(Unreadable::Form(format!("expected hosts from 0 to {last}")))
            }
        },
        _ => Err(unexpected(hosts, fabric)),
    }
}

/// Numbers of a buffer; `None` for a buffer of another type.
fn numbers(py: Python<'_>, buffer: &PyUntypedBuffer) -> PyResult<Option<Numbers>> {
    if let Some(numbers) = of_type::<i64>(py, buffer)? {
        return Ok(Some(Numbers::Whole(numbers)));
    }
    if let Some(numbers) = of_type::<i32>(py, buffer)? {
        return Ok(Some(Numbers::Whole(numbers.into_iter().map(i64::from).collect())));
    }
    if let Some(scores) = of_type::<f64>(py, buffer)? {
        return Ok(Some(Numbers::Scores(scores)));
    }
    let scores = of_type::<f32>(py, buffer)?;
    Ok(scores.map(|scores| Numbers::Scores(scores.into_iter().map(f64::from).collect())))
}

/// Items of a buffer of this type, row by row; `None` for another type.
fn of_type<T: Element>(py: Python<'_>, buffer: &PyUntypedBuffer) -> PyResult<Option<Vec<T>>> {
    buffer.as_typed::<T>().ok().map(|typed| typed.to_vec(py)).transpose()
}

fn read_items(answer: &Bound<'_, PyAny>, fabric: &Fabric) -> Result<Answer, Unreadable> {
    let items = items(answer, fabric)?;
    if items.first().is_some_and(|first| first.is_instance_of::<PyFloat>()) {
        let scores = items.iter().map(|item| item.extract::<f64>().map_err(|_| unexpected(item, fabric)));
        return Ok(Answer::Scores(scores.collect::<Result<_, _>>()?));
    }
    let hosts = items.iter().map(|item| {
        if let Ok(name) = item.cast::<PyString>() {
            let name = name.to_string_lossy();
            return fabric.host(&name).ok_or_else(|| Unreadable::Form(fabric.no_host(&name)));
        }
        // A mask is no list of hosts.
        let number = if item.is_instance_of::<PyBool>() { None } else { item.extract::<i64>().ok() };
        number.map(host).ok_or_else(|| unexpected(item, fabric))
    });
    Ok(Answer::Hosts(hosts.collect::<Result<_, _>>()?))
}

fn items<'py>(answer: &Bound<'py, PyAny>, fabric: &Fabric) -> Result<Vec<Bound<'py, PyAny>>, Unreadable> {
    let items = answer.try_iter().map_err(|_| unexpected(answer, fabric))?;
    let items: Vec<Bound<'py, PyAny>> = items.take(MOST_ITEMS + 1).collect::<PyResult<_>>()?;
    if items.len() > MOST_ITEMS {
        return Err(Unreadable::Form(format!("more than {MOST_ITEMS} items")));
    }
    Ok(items)
}

fn is_text(answer: &Bound<'_, PyAny>) -> bool {
    answer.is_instance_of::<PyString>()
        || answer.is_instance_of::<PyBytes>()
        || answer.is_instance_of::<PyByteArray>()
}

fn unexpected(found: &Bound<'_, PyAny>, fabric: &Fabric) -> Unreadable {
    let name = found.get_type().qualname().map_or_else(|_| "object".to_owned(), |name| name.to_string());
    let hosts = fabric.host_count();
    Unreadable::Form(format!(
        "returned `{name}`: expected numbers or names of hosts, {hosts} scores (floats), or None"
    ))
}
