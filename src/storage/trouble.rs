//! What a failed start means to whoever started it.

/// The kinds of trouble a store can be in, told apart because each asks for another hand.
///
/// Every error of this folder names its kind with a method `trouble()`. The numbers are the exit codes of sysexits.h,
/// which the command line gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trouble {
    /// Another process holds the folder: stop one of the two (75, `EX_TEMPFAIL`).
    Locked,
    /// The folder or the disk refuses to work: a path, a permission, a full or failing disk (74, `EX_IOERR`).
    NotUsable,
    /// What is stored cannot be trusted: restore it, or state a floor (65, `EX_DATAERR`).
    Damaged,
    /// What is stored is sound and contradicts the configuration: change the configuration (78, `EX_CONFIG`).
    Disagrees,
}
