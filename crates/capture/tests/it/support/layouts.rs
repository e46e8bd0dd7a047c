//! Templates of NetFlow 9 and IPFIX with any fields, and their records.

use super::exports::set;

/// Length of fields that state their length in each record.
pub const VARIABLE: u16 = 65_535;

/// A field of a template: number, length, enterprise.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Spec {
    pub number: u16,
    pub length: u16,
    pub enterprise: Option<u32>,
}

pub fn spec(number: u16, length: u16) -> Spec {
    Spec { number, length, enterprise: None }
}

fn specs(specs: &[Spec]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for spec in specs {
        let first = if spec.enterprise.is_some() { 0x8000 } else { 0 };
        bytes.extend((spec.number | first).to_be_bytes());
        bytes.extend(spec.length.to_be_bytes());
        spec.enterprise.iter().for_each(|number| bytes.extend(number.to_be_bytes()));
    }
    bytes
}

fn words(words: &[u16]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}

/// A set with one template.
pub fn template(ipfix: bool, id: u16, fields: &[Spec]) -> Vec<u8> {
    set(if ipfix { 2 } else { 0 }, &[words(&[id, fields.len() as u16]), specs(fields)].concat())
}

/// A set with one options template; the first field is its scope.
pub fn options_template(ipfix: bool, id: u16, fields: &[Spec]) -> Vec<u8> {
    let count = fields.len() as u16;
    let head = if ipfix { [id, count, 1] } else { [id, 4, 4 * (count - 1)] };
    set(if ipfix { 3 } else { 1 }, &[words(&head), specs(fields)].concat())
}

/// A record with these values; values of variable length begin with their length, in one byte or in three.
pub fn record(fields: &[Spec], values: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (spec, value) in fields.iter().zip(values) {
        if spec.length == VARIABLE {
            match value.len() {
                short @ ..255 => bytes.push(short as u8),
                long => bytes.extend([&[255][..], &(long as u16).to_be_bytes()].concat()),
            }
        } else {
            assert_eq!(value.len(), usize::from(spec.length));
        }
        bytes.extend(value);
    }
    bytes
}

/// A set of records without padding.
pub fn records(id: u16, records: &[Vec<u8>]) -> Vec<u8> {
    let body = records.concat();
    [words(&[id, body.len() as u16 + 4]), body].concat()
}
