//! The byte formats of stored records, with checksums, for storage engines that store bytes.

pub mod append_row;
pub mod externals_row;
pub mod number_rows;
pub mod report_count_row;
