//! Handles: 64 bits that name a value which a kernel will compute, or a row that exists already.

/// `bucket << 40 | result << 32 | position`.
///
/// The bucket tells the depth and the kernel; the position is the row in the bucket, of a tensor with
/// instance dims its first one (of which there may be none). Buckets below
/// the manifest's number of *sources* are not computed: bucket `s` holds the rows of source `s`
/// (a parameter that is looked up or used as a value, a constant), and its position is the row.
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct Handle(pub u64);

impl Handle {
    /// Where the bucket's bits begin.
    pub const BUCKET_SHIFT: u32 = 40;
    /// Where the result's bits begin.
    pub const RESULT_SHIFT: u32 = 32;
    /// Buckets that a handle can tell apart.
    pub const MAX_BUCKETS: u64 = 1 << 24;
    /// Results of a kernel that a handle can tell apart.
    pub const MAX_RESULTS: u64 = 1 << 8;

    /// The handle of a row: its bucket (below [`Self::MAX_BUCKETS`]), result and position.
    pub fn new(bucket: u32, result: u8, position: u32) -> Handle {
        Handle(
            u64::from(bucket) << Self::BUCKET_SHIFT
                | u64::from(result) << Self::RESULT_SHIFT
                | u64::from(position),
        )
    }

    /// The handle of another result of the same call.
    pub fn result_handle(self, result: u8) -> Handle {
        Handle(self.0 + (u64::from(result) << Self::RESULT_SHIFT))
    }

    /// The bucket.
    pub fn bucket(self) -> u32 {
        (self.0 >> Self::BUCKET_SHIFT) as u32
    }

    /// The number of the result.
    pub fn result(self) -> u8 {
        (self.0 >> Self::RESULT_SHIFT) as u8
    }

    /// The row in the bucket.
    pub fn position(self) -> u32 {
        self.0 as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_come_back() {
        let handle = Handle::new(0xabcdef, 3, 0xfedc_ba98);
        assert_eq!(
            (handle.bucket(), handle.result(), handle.position()),
            (0xabcdef, 3, 0xfedc_ba98)
        );
        assert_eq!(handle.result_handle(4).result(), 7);
        assert_eq!(handle.result_handle(4).position(), handle.position());
    }
}
