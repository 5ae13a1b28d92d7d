//! Checks the move from another generator to idmint. Ids that the other generator has issued must
//! not be minted again.

use std::collections::HashSet;
use std::fs;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use idmint_testing::excluding::mint_among_excluded_ids;
use idmint_testing::ids::{PAYMENT, SEQUENCED, SNOWFLAKE};
use idmint_testing::service::{Home, Service, idmint, run, until};

fn unix_ms() -> u128 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap()
        .as_millis()
}

/// Returns the canonical text of a payment id whose time is `ms` milliseconds from now.
fn payment_in(ms: u128) -> String {
    let mut id = SEQUENCED[PAYMENT].id(unix_ms() + ms, 35, 1_295);
    let mut letters = [b'0'; 9];
    for letter in letters.iter_mut().rev() {
        *letter = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[usize::try_from(id % 36).unwrap()];
        id /= 36;
    }
    String::from_utf8(letters.to_vec()).unwrap()
}

fn starting_after(id: &str) -> String {
    format!("[formats.payment]\nstart_after = '{id}'\n")
}

#[test]
fn a_start_after_a_year_ahead_is_refused_with_its_instant_and_the_next_start_without_it_mints() {
    let home = Home::new();
    let id = payment_in(365 * 86_400_000);
    // Start twice. The first start finds no horizon, and the second one finds a horizon.
    for round in 0..2 {
        let refused = run(home.serve_with(&starting_after(&id)));
        refused.assert(
            78,
            &[
                "formats.payment.start_after",
                &id,
                "minting would begin at 20",
                "clock.max_ahead = 5s",
            ],
        );
        let horizon = home.data_dir().join("horizon");
        assert_eq!(
            horizon.exists(),
            round > 0,
            "a refused first start leaves none"
        );
        let service = home.start();
        service.wait_until_ready();
        let minted = service.mint("payment?count=3");
        assert!(minted.iter().all(|minted| *minted < id), "{minted:?}");
        service.kill();
    }
    let file = home.path("idmint.toml");
    fs::write(&file, starting_after(&id)).unwrap();
    run(idmint(&["check", "--config", file.to_str().unwrap()]))
        .assert(78, &["formats.payment.start_after", &id]);
}

#[test]
fn nothing_at_or_below_start_after_is_minted_across_kills() {
    let (home, payment, snowflake) = (Home::new(), &SEQUENCED[PAYMENT], &SEQUENCED[SNOWFLAKE]);
    // Write the setting in two ways: as a text in a non-canonical encoding, and as a TOML number.
    let payments_after = payment.value(&payment_in(2_000));
    let snowflakes_after = snowflake.id(unix_ms() + 1_500, 31, 4_095);
    let settings = format!(
        "[formats.payment]\nstart_after = '{payments_after}'\n[formats.snowflake]\nstart_after = {snowflakes_after}\n"
    );
    let (mut seen, mut waited) = (HashSet::new(), 0);
    for _ in 0..5 {
        let service = Service::start(home.serve_with(&settings));
        service.wait_until_ready();
        for (format, after) in [(payment, payments_after), (snowflake, snowflakes_after)] {
            let minted = until("the format has begun", || {
                let answer = service.post(&format!("/ids/{}count=20", format.order));
                if answer.status == 200 {
                    return Some(answer.text());
                }
                let refused = answer.text();
                assert!(
                    ["start_after", "sequence-exhausted"]
                        .iter()
                        .any(|why| refused.contains(why)),
                    "{refused}"
                );
                waited += 1;
                None
            });
            for id in minted.lines().map(|text| format.value(text)) {
                assert!(id > after, "{id} is not above {after}");
                assert!(seen.insert((format.order, id)), "{id} came twice");
            }
        }
        service.kill();
    }
    assert_eq!(seen.len(), 200);
    println!("refused {waited} times before they began");
}

#[test]
fn excluded_ids_are_left_out_across_kills() {
    // Each round mints at least 12 500 ids, however slow the machine is.
    let excluded = mint_among_excluded_ids(60_000, 4, Duration::from_millis(300), 50_000);
    println!("{excluded:?}");
    assert!(
        excluded.ids == 240_000 && excluded.minted_among > 10_000 && excluded.long_batches > 0,
        "{excluded:?}"
    );
}

#[test]
fn a_file_of_excluded_ids_is_refused_with_the_line_that_is_wrong() {
    let home = Home::new();
    let file = home.path("issued");
    let settings = format!("[formats.payment]\nexclude = {file:?}\n");
    let path = file.display().to_string();
    run(home.serve_with(&settings))
        .assert(78, &["formats.payment.exclude", &path, "cannot be read"]);
    for (lines, named) in [
        (
            "1I9ZC1000\n1I9ZC0ZZZ\n",
            "line 2: `1I9ZC0ZZZ` is smaller than the id on the line before",
        ),
        (
            "1I9ZC1000\r\n1I9ZC1001\r\n1I9ZC_1002\r\n",
            "line 3: `1I9ZC_1002` is not an id of `payment`",
        ),
        (
            "1I9ZC1000\n\n1I9ZC1001\n",
            "line 2: `` is not an id of `payment`",
        ),
    ] {
        fs::write(&file, lines).unwrap();
        run(home.serve_with(&settings)).assert(78, &["formats.payment.exclude", &path, named]);
        assert!(
            !home.data_dir().join("horizon").exists(),
            "a refused first start leaves none"
        );
    }
    // A valid file: its ids are sorted, its lines end with LF or CRLF, and the last line has no
    // line end. The first and the last line are ids in the old base 62, which `payment` does not
    // write.
    fs::write(
        &file,
        "03nvoJDIi\n1I9ZC1000\r\n1I9ZC1000\n\"1I9ZC1001\",\nz1I9ZC100",
    )
    .unwrap();
    let service = Service::start(home.serve_with(&settings));
    service.wait_until_ready();
    service.log_once_it_says("the ids of another generator (exclude) were read");
    assert_eq!(service.mint("payment?count=3").len(), 3);
    let config = home.path("idmint.toml");
    let told = run(idmint(&["check", "--config", config.to_str().unwrap()]));
    told.assert(0, &[]);
    assert!(
        told.out.contains(&format!(
            "payment does not mint the 3 ids of {path}, so its worker numbers skip 0 ticks"
        )),
        "{}",
        told.out
    );
    let skipped =
        format!("2 lines of {path} are ignored, because payment can never mint their ids");
    assert!(told.out.contains(&skipped), "{}", told.out);
    fs::write(&config, "[formats.payment]\nstart_after = '1I9ZC1000'\n").unwrap();
    let told = run(idmint(&["check", "--config", config.to_str().unwrap()]));
    let expected =
        "payment mints no id at or below 1I9ZC1000: its ids begin at 2026-11-21T03:36:02.000Z";
    assert!(told.out.contains(expected), "{}", told.out);
}
