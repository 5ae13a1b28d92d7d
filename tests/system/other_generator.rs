//! Excludes a million ids of another generator while the service is killed over and over.

use std::time::Duration;

use idmint_testing::excluding::mint_among_excluded_ids;

#[test]
fn a_million_excluded_ids_are_left_out_through_20_kills() {
    // Each of the 20 rounds mints at least its share, even on a busy machine. `make torture` sets
    // this to a hundred million ids.
    let least =
        std::env::var("AMONG_EXCLUDED").map_or(1_200_000, |ids| ids.parse().expect("how many ids"));
    let excluded = mint_among_excluded_ids(250_000, 20, Duration::from_secs(2), least);
    println!("{excluded:?}");
    assert!(
        excluded.ids == 1_000_000 && excluded.minted_among > 1_000_000,
        "{excluded:?}"
    );
    assert!(excluded.long_batches > 0, "{excluded:?}");
}
