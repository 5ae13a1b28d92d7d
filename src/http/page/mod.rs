//! The page for people with a browser: its files, inside the binary, and how they are answered.

mod file_answer;
mod page_file;

pub(in crate::http) use file_answer::answer;
pub(in crate::http) use page_file::{file_named, front};
