//! Classes of service: the class of a packet, by the code point in its IP header, from which switches choose a queue.

use leeward_fabric::Dscp;
use leeward_fabric::input::{InputError, excerpt};

/// Number of a class, as an index into [`Matrix::classes`](crate::Matrix::classes).
pub type ClassId = u8;

/// Entry for all code points that no other class has.
const REST: &str = "*";
/// Number of code points, and largest number of classes.
pub(crate) const CODE_POINTS: usize = 64;
/// Longest name of a class, in bytes.
const LONGEST_NAME: usize = 64;

/// Classes of service with their code points.
#[derive(Clone, Debug)]
pub struct Classes {
    names: Vec<String>,
    /// Class of each code point.
    of: [Option<ClassId>; CODE_POINTS],
    /// True if the user named the classes; a matrix then has all of them.
    named: bool,
}

impl Classes {
    /// Each code point as a class with the name of the code point.
    pub fn code_points() -> Classes {
        let of = std::array::from_fn(|code| Some(code as ClassId));
        Classes { names: Dscp::all().map(Dscp::name).collect(), of, named: false }
    }

    /// Classes by name, each with its code points: numbers, names such as `ef`, or `*` for all that no class has.
    ///
    /// # Errors
    ///
    /// Fails if there is no class, if a class has no code points, or if two classes have the same name or code point.
    pub fn named(classes: &[(String, Vec<String>)]) -> Result<Classes, InputError> {
        let invalid = |message: &str| InputError::new("classes", message);
        if classes.is_empty() || classes.len() > CODE_POINTS {
            return Err(invalid("expected 1 to 64 classes"));
        }
        let (mut names, mut of, mut rest) = (Vec::<String>::new(), [None; CODE_POINTS], None);
        for (class, (name, points)) in (0..).zip(classes) {
            let wrong = |message: String| invalid(&message).in_field(excerpt(name));
            let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
            if name.is_empty() || name.len() > LONGEST_NAME || !name.bytes().all(is_plain) {
                return Err(wrong(
                    "expected a name of letters, digits and -_., at most 64 characters".into(),
                ));
            }
            if names.contains(name) {
                return Err(wrong("given twice; expected each class once".into()));
            }
            if points.is_empty() {
                return Err(wrong("no code points; expected some, such as ef or 46".into()));
            }
            for point in points {
                let slot: &mut Option<ClassId> = if point == REST {
                    &mut rest
                } else {
                    let code = point
                        .parse::<Dscp>()
                        .map_err(|expected| wrong(format!("`{}`: {expected}", excerpt(point))))?;
                    &mut of[usize::from(code.code())]
                };
                if let Some(other) = slot.replace(class) {
                    let other = names.get(usize::from(other)).unwrap_or(name);
                    return Err(wrong(format!("`{point}`: also a code point of {other}")));
                }
            }
            names.push(name.clone());
        }
        let of = of.map(|class| class.or(rest));
        Ok(Classes { names, of, named: true })
    }

    /// Number of classes.
    pub(crate) fn count(&self) -> usize {
        self.names.len()
    }

    /// Class of a code point; `None` if no class has it.
    pub fn of(&self, point: Dscp) -> Option<ClassId> {
        self.of[usize::from(point.code())]
    }

    /// Names of the classes of a matrix, and the number there of each class: all classes that the user named, or the code
    /// points that are present.
    pub(crate) fn close(self, is_present: [bool; CODE_POINTS]) -> (Vec<String>, [ClassId; CODE_POINTS]) {
        let (mut names, mut numbers) = (Vec::new(), [0; CODE_POINTS]);
        for (class, name) in self.names.into_iter().enumerate() {
            if self.named || is_present[class] {
                numbers[class] = names.len() as ClassId;
                names.push(name);
            }
        }
        (names, numbers)
    }
}
