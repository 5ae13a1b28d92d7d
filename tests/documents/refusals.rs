//! Checks that `docs/ERRORS.md` lists every refusal.

use std::fmt::Write;

use idmint_http::Slug;

use idmint_testing::generated::assert_generated;

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
