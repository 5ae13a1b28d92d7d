//! Generates texts of known kinds, such as UUIDs and timestamps, in the form that other programs
//! write. Their times are spread over the years in which each kind was in use.

use idmint_core::id::Format;
use rand::rngs::StdRng;
use rand::{Rng, RngExt};
use uuid::{Builder, Uuid};

/// The time at which all texts are decoded, in seconds since 1970: 2027-01-15.
pub(crate) const NOW: u64 = 1_800_000_000;

const YEAR: u64 = 31_556_952;

/// A kind of text, such as UUIDs of version 1, and the function that generates its texts.
pub(crate) struct Kind {
    pub name: &'static str,
    /// The name of the format that is right for these texts, or `None` if they are not ids of any
    /// format.
    pub format: Option<&'static str>,
    pub class: Class,
    /// The first year in which programs wrote texts of this kind.
    since: u64,
    write: fn(&mut Maker<'_>) -> String,
}

/// The difficulty of recognizing the format of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    /// The text alone determines the format, such as a UUID with its version.
    Unmistakable,
    /// The text is a decimal number of up to 64 bits, which many formats can read.
    Decimal,
    /// Any other text that is an id.
    Other,
    /// The text is not an id of any format.
    NoId,
}

/// The state of the generator of one text: the random source, and the time and machine of the text.
pub(crate) struct Maker<'a> {
    pub random: &'a mut StdRng,
    /// The time at which the text is written, in nanoseconds since 1970.
    nanos: u64,
    /// A number that identifies the machine. All texts of one column come from the same machine.
    machine: u64,
    /// The number of texts that were generated before this one.
    at: u64,
}

impl Maker<'_> {
    fn below(&mut self, bound: u64) -> u64 {
        self.random.random_range(0..bound)
    }

    fn bytes<const LEN: usize>(&mut self) -> [u8; LEN] {
        let mut bytes = [0; LEN];
        self.random.fill_bytes(&mut bytes);
        bytes
    }

    fn letters(&mut self, alphabet: &[u8], len: usize) -> String {
        (0..len)
            .map(|_| char::from(alphabet[self.random.random_range(0..alphabet.len())]))
            .collect()
    }

    fn millis(&self) -> u64 {
        self.nanos / 1_000_000
    }

    fn seconds(&self) -> u64 {
        self.nanos / 1_000_000_000
    }

    fn millis_since(&self, epoch: u64) -> u64 {
        self.millis() - epoch
    }

    /// Draws the value of a counter. At least half of the values are 0, because most counters start
    /// again at 0 in each tick.
    fn counter(&mut self, bound: u64) -> u64 {
        match self.below(4) {
            0 => self.below(bound),
            1 => self.below(16.min(bound)),
            _ => 0,
        }
    }

    fn hex(&mut self, bytes: usize) -> String {
        self.letters(b"0123456789abcdef", 2 * bytes)
    }

    /// Returns the text of an id of the format `name`. The id has the time of this generator, the
    /// field values in `own`, and random values in all other fields.
    fn id_of(&mut self, name: &str, encoding: &str, own: &[(&str, u128)]) -> String {
        let format = Format::built_in(name).expect("a built-in format");
        let layout = &format.variants[0].layout;
        let ticks = format
            .ticks_at(idmint_core::time::UnixNanos::new(self.nanos).into())
            .expect("a time of the format");
        let values: Vec<u128> = layout
            .fields()
            .iter()
            .map(|field| match field.constant {
                Some(value) => value,
                None if field.name == "time" => ticks,
                None => own
                    .iter()
                    .find(|(name, _)| *name == field.name)
                    .map_or_else(
                        || self.random.random_range(0..=field.max),
                        |(_, value)| *value,
                    ),
            })
            .collect();
        let id = layout.pack(&values).expect("values of the fields");
        format.encoding(encoding).expect("an encoding").to_text(id)
    }
}

const BASE62: &[u8] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
pub(crate) const BASE36: &[u8] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
pub(crate) const BASE64_URL: &[u8] =
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
const NANOID: &[u8] = b"useandom-26T198340PX75pxJACKVERYMINDBUSHWOLF_GQZbfghjklqvwyzrict";
pub(crate) const DIGITS: &[u8] = b"0123456789";
pub(crate) const CROCKFORD: &[u8] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";

fn ulid(maker: &mut Maker<'_>) -> ulid::Ulid {
    let random = maker.random.random::<u128>();
    ulid::Ulid::from_parts(maker.millis(), random)
}

/// Returns a UUID of this version that starts with the bytes in `head`. All other bits are random.
fn uuid(maker: &mut Maker<'_>, version: uuid::Version, head: &[u8]) -> Uuid {
    let mut bytes = maker.bytes::<16>();
    bytes[..head.len()].copy_from_slice(head);
    Builder::from_bytes(bytes)
        .with_variant(uuid::Variant::RFC4122)
        .with_version(version)
        .into_uuid()
}

/// Returns the time of the text as a UUID of version 1 stores it, in units of 100 ns since 1582.
fn gregorian(maker: &Maker<'_>) -> u64 {
    maker.nanos / 100 + 0x01b2_1dd2_1381_4000
}

fn uuid1(maker: &mut Maker<'_>) -> Uuid {
    let ticks = gregorian(maker) + maker.below(10_000);
    let sequence = u16::try_from(maker.machine & 0x3fff).expect("14 bits");
    let node = (maker.machine | 2 << 40).to_be_bytes();
    let (low, mid, high) = (
        ticks as u32,
        (ticks >> 32) as u16,
        (ticks >> 48) as u16 & 0xfff,
    );
    let mut rest = [0; 8];
    rest[..2].copy_from_slice(&(0x8000 | sequence).to_be_bytes());
    rest[2..].copy_from_slice(&node[2..]);
    Uuid::from_fields(low, mid, high | 0x1000, &rest)
}

fn uuid6(maker: &mut Maker<'_>) -> Uuid {
    let ticks = gregorian(maker) + maker.below(10_000);
    let (high, mid, low) = (
        (ticks >> 28) as u32,
        (ticks >> 12) as u16,
        ticks as u16 & 0xfff,
    );
    let mut rest = maker.bytes::<8>();
    rest[0] = 0x80 | rest[0] & 0x3f;
    Uuid::from_fields(high, mid, low | 0x6000, &rest)
}

fn luhn(digits: &str) -> char {
    let sum: u32 = digits
        .chars()
        .rev()
        .enumerate()
        .map(|(at, digit)| {
            let digit = digit.to_digit(10).expect("a digit");
            let twice = if at % 2 == 0 { 2 * digit } else { digit };
            twice / 10 + twice % 10
        })
        .sum();
    char::from_digit((10 - sum % 10) % 10, 10).expect("a digit")
}

const fn kind(
    name: &'static str,
    format: &'static str,
    class: Class,
    since: u64,
    write: fn(&mut Maker<'_>) -> String,
) -> Kind {
    Kind {
        name,
        format: Some(format),
        class,
        since,
        write,
    }
}

const fn other(name: &'static str, write: fn(&mut Maker<'_>) -> String) -> Kind {
    Kind {
        name,
        format: None,
        class: Class::NoId,
        since: 2010,
        write,
    }
}

use Class::{Decimal, Other, Unmistakable};

/// All kinds of text that the calibration measures.
pub(crate) const KINDS: &[Kind] = &[
    kind("UUIDv1", "uuid1", Unmistakable, 1996, |maker| {
        uuid1(maker).to_string()
    }),
    kind("UUIDv3", "uuid3", Unmistakable, 2000, |maker| {
        uuid(maker, uuid::Version::Md5, &[]).to_string()
    }),
    kind("UUIDv4", "uuid4", Unmistakable, 2000, |maker| {
        uuid(maker, uuid::Version::Random, &[]).to_string()
    }),
    kind("UUIDv5", "uuid5", Unmistakable, 2000, |maker| {
        uuid(maker, uuid::Version::Sha1, &[]).to_string()
    }),
    kind("UUIDv6", "uuid6", Unmistakable, 2021, |maker| {
        uuid6(maker).to_string()
    }),
    kind("UUIDv7", "uuid7", Unmistakable, 2022, |maker| {
        let head = (maker.millis() << 16).to_be_bytes();
        uuid(maker, uuid::Version::SortRand, &head[..6]).to_string()
    }),
    kind("UUIDv8", "uuid8", Unmistakable, 2022, |maker| {
        uuid(maker, uuid::Version::Custom, &[]).to_string()
    }),
    // The package `uuid6` of PyPI begins UUIDs of version 8 with the time in milliseconds.
    kind("UUIDv8 with time", "uuid8", Unmistakable, 2022, |maker| {
        let head = (maker.millis() << 16).to_be_bytes();
        uuid(maker, uuid::Version::Custom, &head[..6]).to_string()
    }),
    kind("ULID", "ulid", Unmistakable, 2016, |maker| {
        ulid(maker).to_string()
    }),
    kind("ULID, hex", "ulid", Other, 2016, |maker| {
        format!("{:032x}", ulid(maker).0)
    }),
    kind("ULID as UUID", "ulid", Other, 2016, |maker| {
        Uuid::from_u128(ulid(maker).0).to_string()
    }),
    kind("Discord", "snowflake", Decimal, 2015, |maker| {
        let time = maker.millis_since(1_420_070_400_000);
        let (worker, sequence) = (maker.below(1024), maker.counter(4096));
        (time << 22 | worker << 12 | sequence).to_string()
    }),
    kind("Twitter", "twitter", Decimal, 2011, |maker| {
        let time = maker.millis_since(1_288_834_974_657);
        let (worker, sequence) = (maker.below(1024), maker.counter(4096));
        (time << 22 | worker << 12 | sequence).to_string()
    }),
    kind("Instagram", "instagram", Decimal, 2012, |maker| {
        let time = maker.millis_since(1_314_220_021_721);
        let (shard, sequence) = (maker.below(4000), maker.below(1024));
        (time << 23 | shard << 10 | sequence).to_string()
    }),
    kind("Mastodon", "mastodon", Decimal, 2017, |maker| {
        (maker.millis() << 16 | maker.below(1 << 16)).to_string()
    }),
    kind("Sonyflake", "sonyflake", Decimal, 2015, |maker| {
        let time = maker.millis_since(1_409_529_600_000) / 10;
        let (machine, sequence) = (maker.below(1 << 16), maker.counter(256));
        (time << 24 | sequence << 16 | machine).to_string()
    }),
    kind(
        "Sonyflake, one machine",
        "sonyflake",
        Decimal,
        2015,
        |maker| {
            let time = maker.millis_since(1_409_529_600_000) / 10;
            let sequence = maker.counter(256);
            (time << 24 | sequence << 16 | maker.machine & 0xffff).to_string()
        },
    ),
    kind("TSID", "tsid", Other, 2021, |maker| {
        maker.id_of("tsid", "crockford", &[])
    }),
    kind("TSID, decimal", "tsid", Decimal, 2021, |maker| {
        maker.id_of("tsid", "decimal", &[])
    }),
    kind("KSUID", "ksuid", Unmistakable, 2017, |maker| {
        let mut bytes = maker.bytes::<20>();
        let seconds = u32::try_from(maker.seconds() - 1_400_000_000).expect("32 bits");
        bytes[..4].copy_from_slice(&seconds.to_be_bytes());
        let mut text = Vec::new();
        for _ in 0..27 {
            let mut rest = 0;
            for byte in &mut bytes {
                let value = rest * 256 + u32::from(*byte);
                *byte = u8::try_from(value / 62).expect("a byte");
                rest = value % 62;
            }
            text.push(BASE62[rest as usize]);
        }
        text.reverse();
        String::from_utf8(text).expect("letters")
    }),
    kind("XID", "xid", Unmistakable, 2015, |maker| {
        let machine = u128::from(maker.machine);
        let own = [
            ("machine", machine & 0xff_ffff),
            ("process", machine & 0xffff),
        ];
        maker.id_of("xid", "base32hex", &own)
    }),
    kind("ObjectId", "objectid", Unmistakable, 2009, |maker| {
        format!(
            "{:08x}{:010x}{:06x}",
            maker.seconds(),
            maker.below(1 << 40),
            maker.below(1 << 24)
        )
    }),
    kind("Firebase", "firebase", Other, 2012, |maker| {
        maker.id_of("firebase", "base64_lex", &[])
    }),
    kind("TypeID", "typeid", Unmistakable, 2023, |maker| {
        let head = (maker.millis() << 16).to_be_bytes();
        let uuid = uuid(maker, uuid::Version::SortRand, &head[..6]);
        format!(
            "user_{}",
            ulid::Ulid(uuid.as_u128()).to_string().to_lowercase()
        )
    }),
    kind("payment", "payment", Other, 2024, |maker| {
        let sequence = maker.counter(1296);
        maker.id_of(
            "payment",
            "base36",
            &[("sequence", sequence.into()), ("worker", 0)],
        )
    }),
    kind("SIQ", "siq", Other, 2019, |maker| {
        let serial = maker.counter(32);
        maker.id_of(
            "siq",
            "hex_padded",
            &[("domain", 0), ("serial", serial.into())],
        )
    }),
    kind("Flax", "flax", Other, 2015, |maker| {
        maker.id_of("flax", "base64_lex", &[])
    }),
    kind("Evently", "evently", Other, 2020, |maker| {
        maker.id_of("evently", "hex_padded", &[])
    }),
    kind("conjunction", "conjunction", Other, 2020, |maker| {
        let [primary, secondary] = [maker.below(70_000), maker.below(70_000)];
        let own = [("primary", primary.into()), ("secondary", secondary.into())];
        maker.id_of("conjunction", "hashids", &own)
    }),
    other("NanoID", |maker| maker.letters(NANOID, 21)),
    other("Stripe-like", |maker| {
        format!("ch_{}", maker.letters(BASE62, 24))
    }),
    other("numbers of a sequence", |maker| {
        (1 + maker.at * 3).to_string()
    }),
    other("large numbers of a sequence", |maker| {
        (8_000_000_000 + maker.at).to_string()
    }),
    other("Unix time, s", |maker| maker.seconds().to_string()),
    other("Unix time, ms", |maker| maker.millis().to_string()),
    other("Unix time, us", |maker| (maker.nanos / 1000).to_string()),
    other("Unix time, ns", |maker| maker.nanos.to_string()),
    other("phone number", |maker| {
        let len = 9 + maker.random.random_range(0..3_usize);
        format!("4{}", maker.letters(DIGITS, len))
    }),
    other("card number", |maker| {
        let digits = format!("4{}", maker.letters(DIGITS, 14));
        let check = luhn(&digits);
        format!("{digits}{check}")
    }),
    other("IBAN", |maker| match maker.below(3) {
        0 => format!("DE{}", maker.letters(DIGITS, 20)),
        1 => format!(
            "GB{}NWBK{}",
            maker.letters(DIGITS, 2),
            maker.letters(DIGITS, 14)
        ),
        _ => format!("FR{}", maker.letters(DIGITS, 25)),
    }),
    other("MD5", |maker| maker.hex(16)),
    other("SHA-1", |maker| maker.hex(20)),
    other("SHA-256", |maker| maker.hex(32)),
    other("xxHash64", |maker| maker.hex(8)),
    other("CRC-32", |maker| maker.hex(4)),
    other("coupon", |maker| maker.letters(CROCKFORD, 12)),
];

/// Random tokens that look like ids of a format, because they have its length and its letters. The
/// tokens of one column begin with the same letters. The fields are the name of the kind, these
/// letters, and the number and alphabet of the random letters.
pub(crate) const TOKENS: [(&str, &str, usize, &[u8]); 6] = [
    ("token like a Flax id", "A", 15, BASE62),
    ("token like a Flax id of this year", "0R", 14, BASE64_URL),
    ("token of base 64", "", 16, BASE64_URL),
    ("token like a payment id", "1A", 7, BASE36),
    ("token of base 36", "", 9, BASE36),
    ("token like a TSID", "0K", 11, CROCKFORD),
];

/// Returns `count` tokens that begin with `head`.
pub(crate) fn tokens(
    head: &str,
    len: usize,
    alphabet: &[u8],
    count: usize,
    random: &mut StdRng,
) -> Vec<String> {
    let mut letter = || char::from(alphabet[random.random_range(0..alphabet.len())]);
    let mut token = || head.chars().chain((0..len).map(|_| letter())).collect();
    (0..count).map(|_| token()).collect()
}

/// Returns `count` texts of one kind, at random moments within the years of its use.
pub(crate) fn spread(kind: &Kind, count: usize, random: &mut StdRng) -> Vec<String> {
    let from = (kind.since - 1970) * YEAR + YEAR / 2;
    let machine = random.random_range(0..1_u64 << 40);
    (0..count)
        .map(|at| {
            let nanos = random.random_range(from * 1_000_000_000..NOW * 1_000_000_000);
            let at = u64::try_from(at).expect("a count");
            (kind.write)(&mut Maker {
                random,
                nanos,
                machine,
                at,
            })
        })
        .collect()
}
