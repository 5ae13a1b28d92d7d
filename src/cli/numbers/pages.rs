//! What a service has, page by page.

use crate::cli::exit::Failure;
use crate::cli::print::Lines;

/// Writes a line for each item of all pages; `page` asks for the one behind `after`, and says what is behind it.
pub(super) async fn write_pages<T>(
    lines: &mut Lines,
    page: impl AsyncFn(Option<String>) -> Result<(Vec<T>, Option<String>), Failure>,
    line: impl Fn(&T) -> String,
) -> Result<(), Failure> {
    let mut after = None;
    while lines.are_read() {
        let (items, next) = page(after).await?;
        for item in &items {
            lines.write(&line(item))?;
        }
        after = next;
        if after.is_none() {
            break;
        }
    }
    Ok(())
}
