//! `docs/ERRORS.md` has every refusal that there is.

use std::fmt::Write;

use idmint::http::Slug;

use crate::generated::assert_generated;

#[test]
fn the_table_of_refusals_is_that_of_the_code() {
    let mut table = "\n| refusal | status | what | what to do |\n|---|---|---|---|\n".to_owned();
    for slug in Slug::ALL {
        let page = slug.page();
        writeln!(
            table,
            "| `{}` | {} | {} | {} |",
            page.name, page.status, page.title, page.safe_action
        )
        .unwrap();
    }
    assert_generated("docs/ERRORS.md", "refusals", &(table + "\n"));
}
