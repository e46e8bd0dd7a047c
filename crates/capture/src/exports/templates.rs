//! Templates: the layout of records in NetFlow 9 and IPFIX (RFC 3954 section 5, RFC 7011 sections 3.4 and 7), and the
//! division of a set into records.
//!
//! The division is written here, because the available library (netflow_parser 1.0) drops records without an error:
//! those with an empty field of variable length, and all records of a template with a field of length 0.

use super::fields::{Field, Fields};

/// Number of the set of templates in NetFlow 9, and of templates in IPFIX.
pub const TEMPLATES: [u16; 2] = [0, 2];
/// Number of the set of options templates in NetFlow 9, and in IPFIX.
pub const OPTIONS_TEMPLATES: [u16; 2] = [1, 3];
/// Smallest number of a template, and of its sets of records.
pub const LEAST_ID: u16 = 256;
/// Length of fields that state their length in each record.
const VARIABLE: u16 = 65_535;
/// First bit of a field's number in IPFIX, if the number belongs to an enterprise.
const ENTERPRISE: u16 = 0x8000;
/// Enterprise of the scopes in NetFlow 9, whose numbers have another meaning than those of fields.
pub const SCOPE: u32 = u32::MAX;

/// A field of a template.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Spec {
    /// Enterprise that the number belongs to; 0 for the numbers of RFC 7012.
    enterprise: u32,
    number: u16,
    length: u16,
}

/// Layout of a record.
#[derive(PartialEq, Eq, Debug)]
pub struct Template {
    /// True if its records are options, which describe the exporter.
    pub options: bool,
    specs: Vec<Spec>,
    /// Bytes of the shortest record.
    least: usize,
}

impl Template {
    fn new(options: bool, specs: Vec<Spec>) -> Template {
        let least = |spec: &Spec| if spec.length == VARIABLE { 1 } else { usize::from(spec.length) };
        let least = specs.iter().map(least).sum();
        Template { options, specs, least }
    }

    /// Memory of the template, in fields.
    pub fn weight(&self) -> usize {
        self.specs.len() + 8
    }

    /// Divides a set into records. Padding is shorter than every record (RFC 7011 section 3.3.1). Returns the number of bytes that are neither a record nor padding.
    pub fn divide<'a>(&self, mut set: &'a [u8], mut record: impl FnMut(&Fields<'a>)) -> usize {
        let mut fields = Fields::default();
        while self.least > 0 && set.len() >= self.least {
            let Some(rest) = self.read(set, &mut fields) else { return set.len() };
            record(&fields);
            set = rest;
        }
        if set.iter().all(|&byte| byte == 0) { 0 } else { set.len() }
    }

    /// Reads the first record of a set; returns the rest of the set, or `None` if the set ends inside the record.
    fn read<'a>(&self, mut set: &'a [u8], fields: &mut Fields<'a>) -> Option<&'a [u8]> {
        fields.clear();
        for spec in &self.specs {
            let mut length = usize::from(spec.length);
            if spec.length == VARIABLE {
                let (first, rest) = set.split_first()?;
                (length, set) = (usize::from(*first), rest);
                if length == 255 {
                    let (long, rest) = set.split_at_checked(2)?;
                    (length, set) = (usize::from(u16::from_be_bytes([long[0], long[1]])), rest);
                }
            }
            let (bytes, rest) = set.split_at_checked(length)?;
            fields.push(Field { enterprise: spec.enterprise, number: spec.number, bytes });
            set = rest;
        }
        Some(set)
    }
}

/// A change of an exporter's templates.
pub enum Change {
    /// A template with its number; it replaces the template that had the number.
    Add(u16, Template),
    /// The template with this number is withdrawn.
    Withdraw(u16),
    /// All templates, or all options templates, are withdrawn.
    WithdrawAll { options: bool },
}

/// Reads a set of templates; returns the number of bytes that are neither a template nor padding.
pub fn read(id: u16, mut set: &[u8], mut change: impl FnMut(Change)) -> usize {
    let (ipfix, options) = (id >= 2, OPTIONS_TEMPLATES.contains(&id));
    while set.iter().any(|&byte| byte != 0) {
        let Some((found, rest)) = read_one(set, ipfix, options) else { return set.len() };
        change(found);
        set = rest;
    }
    0
}

fn read_one(set: &[u8], ipfix: bool, options: bool) -> Option<(Change, &[u8])> {
    let (id, mut rest) = word(set)?;
    let (count, after) = word(rest)?;
    rest = after;
    if ipfix && count == 0 {
        // A withdrawal names one template, or the set of all templates.
        return match id {
            2 | 3 => Some((Change::WithdrawAll { options: id == 3 }, rest)),
            LEAST_ID.. => Some((Change::Withdraw(id), rest)),
            _ => None,
        };
    }
    let (mut fields, mut scopes) = (usize::from(count), 0);
    if options {
        let (second, after) = word(rest)?;
        rest = after;
        if ipfix {
            // The number of scopes, which are among the fields and have the same numbers.
            (second <= count).then_some(())?;
        } else {
            // Two lengths in bytes: of all scopes, and of all other fields.
            (count % 4 == 0 && second % 4 == 0).then_some(())?;
            scopes = usize::from(count / 4);
            fields = scopes + usize::from(second / 4);
        }
    }
    (id >= LEAST_ID && fields > 0).then_some(())?;
    let mut specs = Vec::with_capacity(fields.min(rest.len() / 4));
    for at in 0..fields {
        let (mut number, after) = word(rest)?;
        let (length, after) = word(after)?;
        rest = after;
        let mut enterprise = if at < scopes { SCOPE } else { 0 };
        if ipfix && number & ENTERPRISE != 0 {
            let (bytes, after) = rest.split_at_checked(4)?;
            enterprise = u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
            (number, rest) = (number & !ENTERPRISE, after);
        }
        specs.push(Spec { enterprise, number, length });
    }
    Some((Change::Add(id, Template::new(options, specs)), rest))
}

fn word(bytes: &[u8]) -> Option<(u16, &[u8])> {
    let (word, rest) = bytes.split_at_checked(2)?;
    Some((u16::from_be_bytes([word[0], word[1]]), rest))
}
