//! Columns of values that are not ids of any known format.

use rand::RngExt;
use rand::rngs::StdRng;

type Draw = fn(usize, u64, &mut StdRng) -> Vec<String>;

const SECOND: u64 = 1_000_000_000;
const DAY: u64 = 86_400 * SECOND;

const HEX: &[u8] = b"0123456789abcdef";
const BASE36: &[u8] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
const UPPER: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ";
const LOWER: &[u8] = b"abcdefghijklmnopqrstuvwxyz";
const BASE62: &[u8] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const BASE64: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
const CROCKFORD: &[u8] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";

const WORDS: &str = "time person year way day thing man world life hand part child eye woman place work week case point \
    government company number group problem fact be have do say get make go know take see come think look want give use \
    find tell ask seem feel try leave call good new first last long great little own other old right big high different \
    small large next early young important few public bad same able absolutely adventure algorithm alphabet ambition \
    ancestor apartment architect avalanche basketball beautiful birthday blackboard bookkeeper boulevard breakfast \
    butterfly calculator candidate cathedral celebration chocolate classroom committee comparison confidence \
    conversation craftsman dangerous database december definition democracy department description detective \
    development dictionary difference discovery duplicate education elephant emergency employment encounter engineers \
    environment equipment establish everybody excellent expensive experience explosion expression extension favourite \
    fireplace framework frequency furniture generation gentleman grandfather happiness hospital hurricane identical \
    implement important impressive incidents industrial influence information inspector insurance interface interview \
    introduce invisible knowledge landscape lightning literature machinery management marketing mechanism microphone \
    milestone moonlight mountains neighbour newspaper nightmare northwest obviously operation orchestra passenger \
    pineapple political president principle professor programme questions quicksand railroads rectangle represent \
    rhinoceros satellite scientist secretary september signature snowflake something spaceship statement structure \
    submarine successful technique telephone temporary therefore tradition transport umbrella understand vegetable \
    volunteer waterfall wednesday windmills wonderful xylophone yesterday zoologist";

fn text(letters: &[u8], len: usize, random: &mut StdRng) -> String {
    (0..len)
        .map(|_| char::from(letters[random.random_range(0..letters.len())]))
        .collect()
}

fn texts(letters: &[u8], len: usize, count: usize, random: &mut StdRng) -> Vec<String> {
    (0..count).map(|_| text(letters, len, random)).collect()
}

/// Returns `count` ascending timestamps within the last `span` nanoseconds. Each timestamp is a
/// multiple of `unit` nanoseconds.
fn moments(span: u64, unit: u64, count: usize, now: u64, random: &mut StdRng) -> Vec<String> {
    let mut moments: Vec<u64> = (0..count)
        .map(|_| (now - random.random_range(0..span)) / unit)
        .collect();
    moments.sort_unstable();
    moments.iter().map(u64::to_string).collect()
}

/// Returns 64-bit ids with a custom layout and epoch. They were minted during the day that ends
/// now.
fn snowflakes(
    epoch: u64,
    tick: u64,
    rest_bits: u32,
    rest: impl Fn(&mut StdRng) -> u64,
    count: usize,
    now: u64,
    random: &mut StdRng,
) -> Vec<String> {
    let mut ids: Vec<u64> = (0..count)
        .map(|_| {
            let ticks = (now - random.random_range(0..DAY) - epoch * SECOND) / tick;
            ticks << rest_bits | rest(random)
        })
        .collect();
    ids.sort_unstable();
    ids.iter().map(u64::to_string).collect()
}

fn words(count: usize, random: &mut StdRng) -> Vec<&'static str> {
    let words: Vec<&str> = WORDS.split_whitespace().collect();
    (0..count)
        .map(|_| words[random.random_range(0..words.len())])
        .collect()
}

fn counted(from: u64, step: u64, count: usize) -> Vec<String> {
    (0..count as u64)
        .map(|at| (from + at * step).to_string())
        .collect()
}

/// Returns the approximate Unix time of the first day of a year.
const fn year(year: u64) -> u64 {
    (year - 1970) * 31_556_952
}

pub(super) const FOREIGN: &[(&str, Draw)] = &[
    ("numbers of 64 bits", |count, _, random| {
        (0..count)
            .map(|_| random.random::<u64>().to_string())
            .collect()
    }),
    ("numbers of 63 bits", |count, _, random| {
        (0..count)
            .map(|_| (random.random::<u64>() >> 1).to_string())
            .collect()
    }),
    ("numbers of 62 bits", |count, _, random| {
        (0..count)
            .map(|_| (random.random::<u64>() >> 2).to_string())
            .collect()
    }),
    ("numbers of 60 bits", |count, _, random| {
        (0..count)
            .map(|_| (random.random::<u64>() >> 4).to_string())
            .collect()
    }),
    ("numbers of 53 bits", |count, _, random| {
        (0..count)
            .map(|_| (random.random::<u64>() >> 11).to_string())
            .collect()
    }),
    ("numbers of 50 bits", |count, _, random| {
        (0..count)
            .map(|_| (random.random::<u64>() >> 14).to_string())
            .collect()
    }),
    ("numbers of 48 bits", |count, _, random| {
        (0..count)
            .map(|_| (random.random::<u64>() >> 16).to_string())
            .collect()
    }),
    ("numbers of 40 bits", |count, _, random| {
        (0..count)
            .map(|_| (random.random::<u64>() >> 24).to_string())
            .collect()
    }),
    ("numbers of 32 bits", |count, _, random| {
        (0..count)
            .map(|_| random.random::<u32>().to_string())
            .collect()
    }),
    ("numbers of 128 bits", |count, _, random| {
        (0..count)
            .map(|_| random.random::<u128>().to_string())
            .collect()
    }),
    ("numbers of 18 digits", |count, _, random| {
        (0..count)
            .map(|_| {
                random
                    .random_range(10_u64.pow(17)..10_u64.pow(18))
                    .to_string()
            })
            .collect()
    }),
    ("numbers of 15 digits", |count, _, random| {
        (0..count)
            .map(|_| {
                random
                    .random_range(10_u64.pow(14)..10_u64.pow(15))
                    .to_string()
            })
            .collect()
    }),
    ("seconds of a day", |count, now, random| {
        moments(DAY, SECOND, count, now, random)
    }),
    ("milliseconds of a day", |count, now, random| {
        moments(DAY, SECOND / 1000, count, now, random)
    }),
    ("microseconds of a day", |count, now, random| {
        moments(DAY, 1000, count, now, random)
    }),
    ("nanoseconds of a day", |count, now, random| {
        moments(DAY, 1, count, now, random)
    }),
    ("nanoseconds of a minute", |count, now, random| {
        moments(60 * SECOND, 1, count, now, random)
    }),
    ("nanoseconds of a year", |count, now, random| {
        moments(365 * DAY, 1, count, now, random)
    }),
    ("microseconds of ten years", |count, now, random| {
        moments(3650 * DAY, 1000, count, now, random)
    }),
    ("nanoseconds of whole microseconds", |count, now, random| {
        moments(DAY, 1000, count, now, random)
            .iter()
            .map(|text| format!("{text}000"))
            .collect()
    }),
    ("nanoseconds of whole milliseconds", |count, now, random| {
        moments(DAY, 1_000_000, count, now, random)
            .iter()
            .map(|text| format!("{text}000000"))
            .collect()
    }),
    ("ticks of .NET", |count, now, random| {
        let moments = moments(DAY, 100, count, now, random);
        moments
            .iter()
            .map(|text| (text.parse::<u64>().unwrap() + 621_355_968_000_000_000).to_string())
            .collect()
    }),
    ("FILETIME", |count, now, random| {
        let moments = moments(DAY, 100, count, now, random);
        moments
            .iter()
            .map(|text| (text.parse::<u64>().unwrap() + 116_444_736_000_000_000).to_string())
            .collect()
    }),
    ("sequence from 1", |count, _, _| counted(1, 1, count)),
    ("sequence from 1 000 000", |count, _, _| {
        counted(1_000_000, 1, count)
    }),
    ("sequence from 10^12 in steps of 10", |count, _, _| {
        counted(1_000_000_000_000, 10, count)
    }),
    ("sequence from 2^53", |count, _, _| {
        counted(1 << 53, 1, count)
    }),
    ("sequence from 10^18", |count, _, _| {
        counted(1_000_000_000_000_000_000, 1, count)
    }),
    ("sequence with gaps", |count, _, random| {
        let mut at = 4_000_000_000_000_000_u64;
        (0..count)
            .map(|_| {
                at += random.random_range(1..50);
                at.to_string()
            })
            .collect()
    }),
    ("days and times as digits", |count, _, random| {
        (0..count)
            .map(|_| {
                format!(
                    "2026112{}{:02}{:02}{:02}",
                    random.random_range(0..5),
                    random.random_range(0..24),
                    random.random_range(0..60),
                    random.random_range(0..60)
                )
            })
            .collect()
    }),
    ("days and milliseconds as digits", |count, _, random| {
        (0..count)
            .map(|_| {
                format!(
                    "20261125{:02}{:02}{:02}{:03}",
                    random.random_range(0..24),
                    random.random_range(0..60),
                    random.random_range(0..60),
                    random.random_range(0..1000)
                )
            })
            .collect()
    }),
    ("days and counters as digits", |count, _, _| {
        (0..count).map(|at| format!("20261125{at:010}")).collect()
    }),
    ("card numbers", |count, _, random| {
        (0..count)
            .map(|_| format!("4{}", text(b"0123456789", 15, random)))
            .collect()
    }),
    ("phone numbers", |count, _, random| {
        (0..count)
            .map(|_| format!("4917{}", text(b"0123456789", 8, random)))
            .collect()
    }),
    ("article numbers", |count, _, random| {
        (0..count)
            .map(|_| format!("400{}", text(b"0123456789", 10, random)))
            .collect()
    }),
    ("addresses as numbers", |count, _, random| {
        (0..count)
            .map(|_| (0xc0a8_0000 + random.random_range(0..65536_u32)).to_string())
            .collect()
    }),
    ("hex of 8", |count, _, random| texts(HEX, 8, count, random)),
    ("hex of 12", |count, _, random| {
        texts(HEX, 12, count, random)
    }),
    ("hex of 14", |count, _, random| {
        texts(HEX, 14, count, random)
    }),
    ("hex of 16", |count, _, random| {
        texts(HEX, 16, count, random)
    }),
    ("hex of 20", |count, _, random| {
        texts(HEX, 20, count, random)
    }),
    ("hex of 24", |count, _, random| {
        texts(HEX, 24, count, random)
    }),
    ("hex of 28", |count, _, random| {
        texts(HEX, 28, count, random)
    }),
    ("hex of 30", |count, _, random| {
        texts(HEX, 30, count, random)
    }),
    ("hex of 32", |count, _, random| {
        texts(HEX, 32, count, random)
    }),
    ("hex of 40", |count, _, random| {
        texts(HEX, 40, count, random)
    }),
    ("hex of 64", |count, _, random| {
        texts(HEX, 64, count, random)
    }),
    ("hex seconds and random bits", |count, now, random| {
        (0..count)
            .map(|_| {
                format!(
                    "{:08x}{}",
                    (now - random.random_range(0..DAY)) / SECOND,
                    text(HEX, 16, random)
                )
            })
            .collect()
    }),
    ("hex milliseconds and random bits", |count, now, random| {
        (0..count)
            .map(|_| {
                format!(
                    "{:012x}{}",
                    (now - random.random_range(0..DAY)) / 1_000_000,
                    text(HEX, 12, random)
                )
            })
            .collect()
    }),
    ("hex microseconds and random bits", |count, now, random| {
        (0..count)
            .map(|_| {
                format!(
                    "{:016x}{}",
                    (now - random.random_range(0..DAY)) / 1000,
                    text(HEX, 16, random)
                )
            })
            .collect()
    }),
    ("uniqid of PHP", |count, now, random| {
        (0..count)
            .map(|_| {
                let us = (now - random.random_range(0..DAY)) / 1000;
                format!("{:08x}{:05x}", us / 1_000_000, us % 1_000_000)
            })
            .collect()
    }),
    ("uuids without a version", |count, _, random| {
        (0..count).map(|_| uuid(random.random())).collect()
    }),
    ("uuids in capitals", |count, _, random| {
        (0..count)
            .map(|_| {
                uuid(random.random::<u128>() & !(0xf << 76) & !(3 << 62) | 4 << 76 | 2 << 62)
                    .to_uppercase()
            })
            .collect()
    }),
    ("words", |count, _, random| {
        words(count, random)
            .into_iter()
            .map(str::to_owned)
            .collect()
    }),
    ("words in capitals", |count, _, random| {
        words(count, random)
            .into_iter()
            .map(str::to_uppercase)
            .collect()
    }),
    ("words of nine capitals", |count, _, random| {
        words(20 * count + 50, random)
            .into_iter()
            .filter(|word| word.len() == 9)
            .take(count)
            .map(str::to_uppercase)
            .collect()
    }),
    ("words with a number", |count, _, random| {
        words(count, random)
            .into_iter()
            .map(|word| format!("{word}{}", random.random_range(1..1000)))
            .collect()
    }),
    ("names of two words", |count, _, random| {
        words(2 * count, random)
            .chunks(2)
            .map(|pair| pair.join("-"))
            .collect()
    }),
    ("base36 of 9", |count, _, random| {
        texts(BASE36, 9, count, random)
    }),
    ("base36 of 9 with a beginning", |count, _, random| {
        (0..count)
            .map(|_| format!("AX{}", text(BASE36, 7, random)))
            .collect()
    }),
    ("capitals of 6", |count, _, random| {
        texts(UPPER, 6, count, random)
    }),
    ("capitals of 9", |count, _, random| {
        texts(UPPER, 9, count, random)
    }),
    ("letters of 20", |count, _, random| {
        texts(LOWER, 20, count, random)
    }),
    ("letters in groups of 7, 7 and 6", |count, _, random| {
        (0..count)
            .map(|_| {
                format!(
                    "{}-{}-{}",
                    text(LOWER, 7, random),
                    text(LOWER, 7, random),
                    text(LOWER, 6, random)
                )
            })
            .collect()
    }),
    ("base62 of 10", |count, _, random| {
        texts(BASE62, 10, count, random)
    }),
    ("base62 of 12", |count, _, random| {
        texts(BASE62, 12, count, random)
    }),
    ("base64 of 11", |count, _, random| {
        texts(BASE64, 11, count, random)
    }),
    ("base64 of 12", |count, _, random| {
        texts(BASE64, 12, count, random)
    }),
    ("base64 of 16", |count, _, random| {
        texts(BASE64, 16, count, random)
    }),
    ("base64 of 20", |count, _, random| {
        texts(BASE64, 20, count, random)
    }),
    ("nanoids of 21", |count, _, random| {
        texts(BASE64, 21, count, random)
    }),
    ("base64 of 16 with a beginning", |count, _, random| {
        (0..count)
            .map(|_| format!("LT{}", text(BASE64, 14, random)))
            .collect()
    }),
    ("crockford of 13", |count, _, random| {
        texts(CROCKFORD, 13, count, random)
    }),
    ("crockford of 26", |count, _, random| {
        (0..count)
            .map(|_| {
                format!(
                    "{}{}",
                    random.random_range(0..8),
                    text(CROCKFORD, 25, random)
                )
            })
            .collect()
    }),
    ("ksuids", |count, _, random| {
        (0..count)
            .map(|_| format!("2{}", text(BASE62, 26, random)))
            .collect()
    }),
    ("cuids", |count, now, random| {
        (0..count)
            .map(|at| {
                format!(
                    "c{}{at:04}{}",
                    text(b"jk", 2, random),
                    text(b"0123456789abcdefghijklmnopqrstuvwxyz", 18, random)
                ) + &(now % 7).to_string()
            })
            .collect()
    }),
    ("typeid suffixes in capitals", |count, now, random| {
        (0..count)
            .map(|_| crockford(uuid7(now - random.random_range(0..DAY), random)))
            .collect()
    }),
    ("layout of Twitter since 2020", |count, now, random| {
        snowflakes(
            year(2020),
            1_000_000,
            22,
            |random| 1 << 12 | u64::from(random.random::<u32>() & 3),
            count,
            now,
            random,
        )
    }),
    ("layout of Twitter since 2014", |count, now, random| {
        snowflakes(
            year(2014),
            1_000_000,
            22,
            |random| 1 << 12 | u64::from(random.random::<u32>() & 3),
            count,
            now,
            random,
        )
    }),
    ("layout of Twitter since 2016", |count, now, random| {
        snowflakes(
            year(2016),
            1_000_000,
            22,
            |random| u64::from(random.random::<u32>() & 3) << 12,
            count,
            now,
            random,
        )
    }),
    ("layout of Twitter since 2018", |count, now, random| {
        snowflakes(year(2018), 1_000_000, 22, |_| 0, count, now, random)
    }),
    ("layout of Twitter since 2024", |count, now, random| {
        snowflakes(year(2024), 1_000_000, 22, |_| 5 << 12, count, now, random)
    }),
    ("seconds and a counter of 32 bits", |count, now, random| {
        snowflakes(
            0,
            SECOND,
            32,
            |random| random.random_range(0..100),
            count,
            now,
            random,
        )
    }),
    ("milliseconds and 20 random bits", |count, now, random| {
        snowflakes(
            0,
            1_000_000,
            20,
            |random| random.random_range(0..1 << 20),
            count,
            now,
            random,
        )
    }),
    ("seconds since 2016 and 30 bits", |count, now, random| {
        snowflakes(
            year(2016),
            SECOND,
            30,
            |random| 7 << 20 | random.random_range(0..50),
            count,
            now,
            random,
        )
    }),
    (
        "milliseconds since 2015 and 22 random bits",
        |count, now, random| {
            snowflakes(
                1_420_070_400,
                1_000_000,
                22,
                |random| random.random_range(0..1 << 22),
                count,
                now,
                random,
            )
        },
    ),
    (
        "10 ms since 2014-09 and 24 random bits",
        |count, now, random| {
            snowflakes(
                1_409_529_600,
                10_000_000,
                24,
                |random| random.random_range(0..1 << 24),
                count,
                now,
                random,
            )
        },
    ),
    (
        "10 ms since 2025 and 15 random bits",
        |count, now, random| {
            snowflakes(
                1_735_689_600,
                10_000_000,
                15,
                |random| random.random_range(0..1 << 15),
                count,
                now,
                random,
            )
        },
    ),
    ("amounts", |count, _, random| {
        (0..count)
            .map(|_| {
                format!(
                    "{}.{:02}",
                    random.random_range(0..10_000),
                    random.random_range(0..100)
                )
            })
            .collect()
    }),
    ("mail addresses", |count, _, random| {
        words(count, random)
            .into_iter()
            .map(|word| format!("{word}@example.com"))
            .collect()
    }),
    ("days", |count, _, random| {
        (0..count)
            .map(|_| {
                format!(
                    "2026-{:02}-{:02}",
                    random.random_range(1..13),
                    random.random_range(1..29)
                )
            })
            .collect()
    }),
    ("instants", |count, _, random| {
        (0..count)
            .map(|_| {
                format!(
                    "2026-11-{:02}T{:02}:{:02}:00Z",
                    random.random_range(1..29),
                    random.random_range(0..24),
                    random.random_range(0..60)
                )
            })
            .collect()
    }),
    ("yes and no", |count, _, random| {
        (0..count)
            .map(|_| ["yes", "no"][random.random_range(0..2)].to_owned())
            .collect()
    }),
    ("one number over and over", |count, _, _| {
        vec!["1234567890123456789".to_owned(); count]
    }),
    ("zeros", |count, _, _| vec!["0".to_owned(); count]),
];

fn uuid(value: u128) -> String {
    let hex = format!("{value:032x}");
    format!(
        "{}-{}-{}-{}-{}",
        &hex[..8],
        &hex[8..12],
        &hex[12..16],
        &hex[16..20],
        &hex[20..]
    )
}

fn uuid7(at: u64, random: &mut StdRng) -> u128 {
    let bits = random.random::<u128>() & !(0xf << 76) & !(3 << 62) | 7 << 76 | 2 << 62;
    u128::from(at / 1_000_000) << 80 | bits & ((1 << 80) - 1)
}

fn crockford(value: u128) -> String {
    (0..26)
        .rev()
        .map(|place| char::from(CROCKFORD[usize::try_from(value >> (5 * place) & 31).unwrap()]))
        .collect()
}

/// Draws the parameters of a layout: the epoch in seconds, the tick in nanoseconds, and the number
/// of bits below the time.
pub(super) fn any_layout(random: &mut StdRng) -> (u64, u64, u32) {
    let epoch = random.random_range(year(2000)..year(2026));
    let unit = [1_000_000, 10_000_000, 100_000_000, SECOND][random.random_range(0..4)];
    let rest_bits = random.random_range(8..25);
    (epoch, unit, rest_bits)
}

/// Returns ids of a layout that [`any_layout`] drew. One to three workers minted them, each with a
/// counter. Minting lasted between a minute and a year, and ended at most five years ago.
pub(super) fn column_of_layout(
    epoch: u64,
    unit: u64,
    rest_bits: u32,
    count: usize,
    now: u64,
    random: &mut StdRng,
) -> Vec<String> {
    let counter_bits = random.random_range(2..rest_bits);
    let workers: Vec<u64> = (0..random.random_range(1..4))
        .map(|_| random.random_range(0..1 << (rest_bits - counter_bits)))
        .collect();
    let until = if random.random() {
        0
    } else {
        random.random_range(0..5 * 365)
    } * DAY;
    let span = [60 * SECOND, DAY, 30 * DAY, 365 * DAY][random.random_range(0..4)];
    let mut ids: Vec<u64> = (0..count)
        .map(|_| {
            let at =
                (now - until - random.random_range(0..span)).saturating_sub(epoch * SECOND) / unit;
            let worker = workers[random.random_range(0..workers.len())];
            at << rest_bits | worker << counter_bits | random.random_range(0..2)
        })
        .collect();
    ids.sort_unstable();
    ids.iter().map(u64::to_string).collect()
}
