//! External data representation (RFC 4506): the types that headers of calls and replies consist of.

/// Bytes of a unit; every item fills whole units.
const UNIT: usize = 4;

/// Bytes that are not the expected item.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum XdrError {
    /// The bytes end within an item.
    #[error("the data ends within an item")]
    Truncated,
    /// An item of variable length is longer than its type allows.
    #[error("an item of {length} bytes: expected at most {most}")]
    TooLong {
        /// Length of the item, in bytes.
        length: u32,
        /// Largest length of its type, in bytes.
        most: u32,
    },
}

/// Reads items from the beginning of some bytes.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    /// A reader at the first byte.
    pub fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { bytes, at: 0 }
    }

    /// Number of bytes read.
    pub fn position(&self) -> usize {
        self.at
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], XdrError> {
        let end = self.at.checked_add(length).ok_or(XdrError::Truncated)?;
        let taken = self.bytes.get(self.at..end).ok_or(XdrError::Truncated)?;
        self.at = end;
        Ok(taken)
    }

    /// Reads an unsigned integer.
    ///
    /// # Errors
    /// Fails if the bytes end before.
    pub fn u32(&mut self) -> Result<u32, XdrError> {
        let mut bytes = [0; 4];
        bytes.copy_from_slice(self.take(4)?);
        Ok(u32::from_be_bytes(bytes))
    }

    /// Reads an unsigned hyper integer.
    ///
    /// # Errors
    /// Fails if the bytes end before.
    pub fn u64(&mut self) -> Result<u64, XdrError> {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(self.take(8)?);
        Ok(u64::from_be_bytes(bytes))
    }

    /// Reads opaque data or a string of at most `most` bytes.
    ///
    /// # Errors
    /// Fails if the data is longer, and if the bytes end before the end of its last unit.
    pub fn opaque(&mut self, most: u32) -> Result<&'a [u8], XdrError> {
        let length = self.u32()?;
        if length > most {
            return Err(XdrError::TooLong { length, most });
        }
        let data = self.take(length as usize)?;
        self.take(padding(length as usize))?;
        Ok(data)
    }
}

/// Writes items to the end of some bytes.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Writer {
    bytes: Vec<u8>,
}

impl Writer {
    /// A writer of nothing yet.
    pub fn new() -> Writer {
        Writer::default()
    }

    /// Writes an unsigned integer.
    #[must_use]
    pub fn u32(mut self, number: u32) -> Writer {
        self.bytes.extend_from_slice(&number.to_be_bytes());
        self
    }

    /// Writes an unsigned hyper integer.
    #[must_use]
    pub fn u64(mut self, number: u64) -> Writer {
        self.bytes.extend_from_slice(&number.to_be_bytes());
        self
    }

    /// Writes opaque data or a string. Data of more than 4 GiB is cut off.
    #[must_use]
    pub fn opaque(mut self, data: &[u8]) -> Writer {
        let length = u32::try_from(data.len()).unwrap_or(u32::MAX);
        let data = &data[..length as usize];
        self = self.u32(length).raw(data);
        self.bytes.resize(self.bytes.len() + padding(data.len()), 0);
        self
    }

    /// Appends items that are written already.
    #[must_use]
    pub fn raw(mut self, items: &[u8]) -> Writer {
        self.bytes.extend_from_slice(items);
        self
    }

    /// The written bytes.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

/// Zero bytes after data of this length.
fn padding(length: usize) -> usize {
    (UNIT - length % UNIT) % UNIT
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn items_are_read_as_they_were_written(
            number in any::<u32>(),
            hyper in any::<u64>(),
            data in prop::collection::vec(any::<u8>(), 0..70),
        ) {
            let bytes = Writer::new().u32(number).opaque(&data).u64(hyper).into_bytes();
            prop_assert_eq!(bytes.len() % UNIT, 0);
            let mut reader = Reader::new(&bytes);
            prop_assert_eq!(reader.u32(), Ok(number));
            prop_assert_eq!(reader.opaque(70), Ok(&data[..]));
            prop_assert_eq!(reader.u64(), Ok(hyper));
            prop_assert_eq!(reader.position(), bytes.len());
            for length in 0..bytes.len() {
                let mut reader = Reader::new(&bytes[..length]);
                let read = reader.u32().and_then(|_| reader.opaque(70)).and_then(|_| reader.u64());
                prop_assert_eq!(read, Err(XdrError::Truncated));
            }
        }

        #[test]
        fn any_bytes_are_read_or_rejected(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            let mut reader = Reader::new(&bytes);
            while reader.opaque(16).is_ok() {}
            prop_assert!(reader.position() <= bytes.len());
        }
    }

    #[test]
    fn data_longer_than_its_type_is_rejected() {
        let bytes = Writer::new().opaque(&[7; 65]).into_bytes();
        assert_eq!(Reader::new(&bytes).opaque(64), Err(XdrError::TooLong { length: 65, most: 64 }));
        let endless = u32::MAX.to_be_bytes();
        assert_eq!(Reader::new(&endless).opaque(u32::MAX), Err(XdrError::Truncated));
    }
}
