//! Advice on storing ids of a format in a database: the column type, the value to bind to a query
//! parameter, and the sort order.

use super::database::{Database, Stored};
use crate::id::encoding::{Encoding, EncodingKind};
use crate::id::format::{Format, Rule};
use crate::id::layout::Field;

/// One way to store the ids of a format in one database.
#[derive(Debug, Clone, Copy)]
pub struct StorageAdvice<'a> {
    /// The database that stores the ids.
    pub database: Database,
    /// The form in which the column holds an id.
    pub stored: Stored<'a>,
    format: &'a Format,
}

impl Format {
    /// Returns the recommended ways to store ids of this format.
    ///
    /// Each database has two ways to store ids: the most compact column that sorts like the ids,
    /// and a readable column that sorts if possible. A grouped format has a third way if its
    /// canonical text does not sort: a column for that text, which is the short id for people. The
    /// advice depends on the greatest id and the encodings of the format.
    ///
    /// ```
    /// use idmint_core::id::{Database, Format};
    ///
    /// let format = Format::built_in("flax").expect("a built-in format");
    /// let advice = format.storage_advice();
    /// let columns = advice.iter().filter(|advice| advice.database == Database::PostgreSql).map(|advice| advice.column());
    /// assert_eq!(columns.collect::<Vec<_>>(), ["bytea", r#"char(16) COLLATE "C""#]);
    /// ```
    pub fn storage_advice(&self) -> Vec<StorageAdvice<'_>> {
        let advise = |database| {
            let kept = self.text_to_keep();
            let short = Some(self.canonical())
                .filter(|short| self.rule == Rule::Grouped && short.name() != kept.name());
            let ways = [self.compact_in(database), self.text_in_column(kept)];
            let ways = ways.into_iter().chain(short.map(Stored::ShortText));
            ways.map(move |stored| StorageAdvice {
                database,
                stored,
                format: self,
            })
        };
        Database::ALL.into_iter().flat_map(advise).collect()
    }

    /// `true` if the ids of the format fit into a signed 64-bit column. `mint_below` limits minted ids
    /// with a time. Other programs store 64-bit ids with a time in signed columns, so `mint_below`,
    /// which is 2^63 by default, limits these ids too, unless ids of today are already greater.
    pub(in crate::id) fn fits_signed_64(&self) -> bool {
        // Minting checks `mint_below` only for formats with a time field.
        let is_small = || self.is_stored_as_integer() && self.example() < 1 << 63;
        let is_bounded = (self.rule.is_minted() || is_small()) && self.end_tick().is_some();
        let met = if is_bounded {
            self.greatest().min(self.mint_below.saturating_sub(1))
        } else {
            self.greatest()
        };
        met < 1 << 63
    }

    fn compact_in(&self, database: Database) -> Stored<'_> {
        let uuid = self
            .encodings
            .iter()
            .find(|encoding| self.is_sorted_as_uuid(encoding, database));
        match uuid {
            _ if self.fits_signed_64() => Stored::Number,
            Some(uuid) => Stored::Uuid(uuid),
            None => Stored::Bytes(self.byte_width()),
        }
    }

    /// `true` if the database's UUID type can hold ids in this encoding, and sorts them as numbers.
    fn is_sorted_as_uuid(&self, encoding: &Encoding, database: Database) -> bool {
        let definition = encoding.definition();
        if definition.prefix.is_some() {
            return false;
        }
        match (database, definition.kind) {
            (Database::PostgreSql, EncodingKind::Uuid | EncodingKind::Uuid8) => true,
            // MariaDB sorts UUIDs of versions below 6 by their last group first. It refuses UUIDs
            // of version 8 and above whose ninth byte is 0x80 (observed in 10.11).
            (Database::MariaDb, EncodingKind::Uuid) => matches!(self.uuid_version(), Some(6 | 7)),
            _ => false,
        }
    }

    /// Returns the UUID version that every id of the format has, or `None` if no constant field
    /// fixes the version.
    fn uuid_version(&self) -> Option<u128> {
        const LOWEST_BIT: u32 = 76;
        const GREATEST: u128 = 0xf;
        let covers = |field: &&Field| {
            let is_above = field.stride.is_power_of_two() && field.stride.ilog2() <= LOWEST_BIT;
            is_above && (field.max * field.stride) >> LOWEST_BIT >= GREATEST
        };
        let fields = self.variants[0].layout.fields().iter();
        let constant = fields
            .filter(|field| field.constant.is_some())
            .find(covers)?;
        Some((constant.constant? * constant.stride) >> LOWEST_BIT & GREATEST)
    }

    /// Returns the form in which a column stores texts in the encoding `kept`. The form has
    /// prefixes only if `kept` is canonical, because texts in other encodings have none.
    fn text_in_column<'a>(&'a self, kept: &'a Encoding) -> Stored<'a> {
        if self.prefixes.is_empty() || kept.name() != self.canonical().name() {
            Stored::Text(kept)
        } else {
            Stored::PrefixedText(kept, &self.prefixes)
        }
    }

    /// Returns the encoding for a column with readable texts. This is the first encoding whose
    /// texts sort like ids and have a fixed length, or else the canonical encoding.
    fn text_to_keep(&self) -> &Encoding {
        let keeps = |encoding: &&Encoding| encoding.is_sortable() && encoding.fixed_len().is_some();
        self.encodings
            .iter()
            .find(keeps)
            .unwrap_or_else(|| self.canonical())
    }
}

impl StorageAdvice<'_> {
    /// Returns the SQL type of the column.
    pub fn column(&self) -> String {
        self.database.column(self.stored)
    }

    /// Returns the id as an SQL literal for this column.
    pub fn literal(&self, id: u128) -> String {
        self.database.literal(self.stored, id)
    }

    /// Returns an SQL statement that creates a table `example` with this column.
    pub fn create_table(&self) -> String {
        format!("CREATE TABLE example (id {} PRIMARY KEY);", self.column())
    }

    /// Returns an SQL statement that inserts an id into the table `example`.
    pub fn insert(&self, id: u128) -> String {
        format!("INSERT INTO example (id) VALUES ({});", self.literal(id))
    }

    /// Returns an SQL query for the ids from `least` to `greatest` in ascending order. Returns
    /// `None` if the column does not sort like the ids.
    pub fn select_range(&self, least: u128, greatest: u128) -> Option<String> {
        let [least, greatest] = [least, greatest].map(|id| self.literal(id));
        let select =
            format!("SELECT id FROM example WHERE id BETWEEN {least} AND {greatest} ORDER BY id;");
        self.stored.is_sorted().then_some(select)
    }

    /// Returns a description of the value that a program must bind to a query parameter for this
    /// column.
    pub fn bind(&self) -> String {
        match self.stored {
            Stored::Number => "the number, as a 64-bit integer".to_owned(),
            Stored::Uuid(encoding) => format!("the encoding {}", encoding.name()),
            Stored::Bytes(bytes) => {
                format!("{bytes} bytes, big-endian, as in application/octet-stream")
            }
            Stored::Text(encoding)
            | Stored::ShortText(encoding)
            | Stored::PrefixedText(encoding, _) => format!("the encoding {}", encoding.name()),
        }
    }

    /// Returns notes for people about this way to store ids. Each note has one or two sentences.
    pub fn notes(&self) -> Vec<String> {
        let notes = [
            self.note_on_sign(),
            self.note_on_sort(),
            self.note_on_uuid(),
            self.note_on_16_bytes(),
        ];
        notes
            .into_iter()
            .flatten()
            .chain([self.note_on_inserts()])
            .collect()
    }

    fn note_on_sign(&self) -> Option<String> {
        let is_capped = matches!(self.stored, Stored::Number) && self.format.greatest() >= 1 << 63;
        let note = if self.format.rule.is_minted() {
            "Ids from 2^63 on can be read but are never minted, so a signed column is enough."
        } else {
            "A signed column holds only ids below 2^63."
        };
        is_capped.then(|| note.to_owned())
    }

    fn note_on_sort(&self) -> Option<String> {
        let (Stored::Text(encoding)
        | Stored::ShortText(encoding)
        | Stored::PrefixedText(encoding, _)) = self.stored
        else {
            return None;
        };
        let name = encoding.name();
        Some(if self.stored.is_sorted() {
            format!(
                "Texts in the encoding {name} sort like their ids only if the collation compares bytes, as SQLite's \
                 default BINARY does. Other collations ignore case or sort letters differently."
            )
        } else {
            let which = match self.stored {
                Stored::PrefixedText(..) => " with different prefixes",
                _ => "",
            };
            format!(
                "Texts in the encoding {name}{which} do not sort like their ids. Use a collation that compares bytes, such as \
                 SQLite's default BINARY. Other collations can treat the texts of two different ids as equal."
            )
        })
    }

    fn note_on_uuid(&self) -> Option<String> {
        let Stored::Bytes(_) = self.stored else {
            return None;
        };
        let writes_uuid = |encoding: &&Encoding| {
            matches!(
                encoding.definition().kind,
                EncodingKind::Uuid | EncodingKind::Uuid8
            )
        };
        let name = self.format.encodings.iter().find(writes_uuid)?.name();
        match self.database {
            Database::SqlServer => Some(format!(
                "In SQL Server, a uniqueidentifier takes the {name} text. SQL Server sorts by the last group of digits \
                 first. A Guid in .NET stores each of the first three groups with its bytes in reverse order."
            )),
            Database::MySql => Some("MySQL has no type for UUIDs.".to_owned()),
            Database::MariaDb => Some(
                "In MariaDB, use the type uuid only for UUIDs of versions 6 and 7. MariaDB sorts UUIDs of lower versions by \
                 their last group of digits first, and refuses some UUIDs of higher versions."
                    .to_owned(),
            ),
            Database::PostgreSql | Database::Sqlite => None,
        }
    }

    /// Returns a note about programs that pad these ids with leading zeros to 16 bytes. Returns
    /// `None` unless the database is MySQL or MariaDB, the column holds bytes, and the format has
    /// the encoding `bytes16_hex`.
    fn note_on_16_bytes(&self) -> Option<String> {
        let (Stored::Bytes(bytes), Database::MySql | Database::MariaDb) =
            (self.stored, self.database)
        else {
            return None;
        };
        let is_wide =
            |encoding: &&Encoding| matches!(encoding.definition().kind, EncodingKind::Bytes16Hex);
        let name = self.format.encodings.iter().find(is_wide)?.name();
        Some(format!(
            "Programs that follow SUOU's documentation store ids as varbinary(16) with {} leading zero bytes. In such a column, \
             bind UNHEX of the {name} text. Columns with and without these zero bytes sort alike, but one column must not mix both forms.",
            16 - bytes
        ))
    }

    fn note_on_inserts(&self) -> String {
        let leads_with_time = self.format.leads_with_time();
        if leads_with_time && self.stored.is_sorted() {
            return "New ids go to the end of the index, and its last pages stay in memory."
                .to_owned();
        }
        // Even if ids begin with their time, texts in this encoding do not sort by time. Texts in
        // another encoding may, so the note names the encoding.
        let subject = match self.stored {
            Stored::Text(encoding)
            | Stored::ShortText(encoding)
            | Stored::PrefixedText(encoding, _)
                if leads_with_time =>
            {
                format!("New {} texts", encoding.name())
            }
            _ => "New ids".to_owned(),
        };
        match self.database {
            Database::MySql | Database::MariaDb | Database::SqlServer => format!(
                "MySQL, MariaDB and SQL Server keep the rows of a table in the order of its primary key. {subject} go to \
                 random places in the table. Use a sequential primary key instead, and give the id a unique index."
            ),
            Database::PostgreSql | Database::Sqlite => format!(
                "{subject} go to random places in the index. Keep the index in memory, or expect a disk read for each \
                 insert."
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::format::FormatDefinition;
    use crate::id::preset;

    /// Returns a decode-only format with these fields and encodings.
    fn custom(fields: &str, encodings: &str) -> Format {
        let text = format!(
            "summary = ''\nrule = 'decode-only'\nfields = [{fields}]\nencodings = [{encodings}]"
        );
        FormatDefinition::from_toml("custom", &text)
            .expect("TOML")
            .compile("custom")
            .expect("sound")
    }

    fn columns(format: &Format, nth: usize) -> Vec<String> {
        let advice = format.storage_advice();
        Database::ALL
            .iter()
            .map(|database| {
                advice
                    .iter()
                    .filter(|advice| advice.database == *database)
                    .nth(nth)
                    .expect("two ways")
            })
            .map(StorageAdvice::column)
            .collect()
    }

    #[test]
    fn ids_that_are_minted_below_2_to_the_63_are_signed_integers() {
        for name in ["snowflake", "twitter", "payment", "conjunction-v1"] {
            assert_eq!(
                columns(&preset(name), 0),
                ["bigint", "bigint", "bigint", "bigint", "INTEGER"],
                "{name}"
            );
        }
        // Other programs mint these ids, and store them as integers.
        for name in ["mastodon", "tsid"] {
            let format = preset(name);
            assert_eq!(columns(&format, 0)[0], "bigint", "{name}");
            let notes = format.storage_advice()[0].notes();
            assert_eq!(notes[0], "A signed column holds only ids below 2^63.");
        }
        let of_others = custom(
            "{ name = 'random', kind = 'random', bits = 64 }",
            "'hex_padded'",
        );
        assert_eq!(
            columns(&of_others, 0)[0],
            "bytea",
            "nobody keeps them below 2^63"
        );
        let of_today = FormatDefinition::from_toml(
            "custom",
            "summary = ''\nrule = 'decode-only'\ntick = '1ms'\nepoch = '1970-01-01T00:00:00Z'\nencodings = ['decimal']\n\
             fields = [{ name = 'time', kind = 'time', bits = 41 }, { name = 'worker', kind = 'worker', bits = 10 }, \
             { name = 'sequence', kind = 'sequence', bits = 13 }]",
        );
        let of_today = of_today.expect("TOML").compile("custom").expect("sound");
        assert_eq!(
            columns(&of_today, 0)[0],
            "bytea",
            "they are above 2^63 since 2004"
        );
    }

    #[test]
    fn wider_ids_are_uuids_where_a_uuid_sorts_like_them_and_bytes_elsewhere() {
        assert_eq!(
            columns(&preset("siq"), 0),
            ["uuid", "binary(14)", "binary(14)", "binary(14)", "BLOB"]
        );
        assert_eq!(
            columns(&preset("flax"), 0),
            ["bytea", "binary(12)", "binary(12)", "binary(12)", "BLOB"]
        );
        let version = |value: u32| {
            let fields = format!(
                "{{ name = 'a', kind = 'random', bits = 48 }}, {{ name = 'version', kind = 'constant', bits = 4, value = {value} }},
                 {{ name = 'b', kind = 'random', bits = 76 }}"
            );
            columns(&custom(&fields, "'uuid'"), 0)[2].clone()
        };
        let in_maria_db = [4, 6, 7, 8].map(version);
        assert_eq!(
            in_maria_db,
            ["binary(16)", "uuid", "uuid", "binary(16)"],
            "which sorts or refuses the others"
        );
        let without = custom("{ name = 'a', kind = 'random', bits = 127 }", "'uuid'");
        assert_eq!(
            columns(&without, 0)[..3],
            ["uuid", "binary(16)", "binary(16)"]
        );
    }

    #[test]
    fn whoever_keeps_siqs_in_16_bytes_as_their_paper_does_is_told_what_to_bind() {
        let siq = preset("siq");
        let told = siq
            .storage_advice()
            .into_iter()
            .flat_map(|advice| advice.notes());
        let told: Vec<String> = told
            .filter(|note| note.contains("varbinary(16) with 2 leading zero bytes"))
            .collect();
        assert_eq!(told.len(), 2, "for MySQL and MariaDB");
        assert!(
            told[0].contains("UNHEX of the bytes16_hex text"),
            "{told:?}"
        );
    }

    #[test]
    fn text_has_a_collation_that_compares_bytes() {
        assert_eq!(
            columns(&preset("flax"), 1),
            [
                r#"char(16) COLLATE "C""#,
                "char(16) CHARACTER SET ascii COLLATE ascii_bin",
                "char(16) CHARACTER SET ascii COLLATE ascii_bin",
                "char(16) COLLATE Latin1_General_BIN2",
                "TEXT"
            ]
        );
        let unsorted = custom("{ name = 'a', kind = 'random', bits = 77 }", "'sqids'");
        let text = unsorted.storage_advice()[1];
        assert!(columns(&unsorted, 1)[0].starts_with("varchar("));
        assert_eq!(text.select_range(0, 1), None);
        assert!(
            text.notes()[0].contains("do not sort"),
            "{:?}",
            text.notes()
        );
    }

    #[test]
    fn a_text_with_a_type_fits_its_column_and_has_no_range() {
        let typeid = preset("typeid");
        assert_eq!(
            columns(&typeid, 1),
            [
                r#"varchar(90) COLLATE "C""#,
                "varchar(90) CHARACTER SET ascii COLLATE ascii_bin",
                "varchar(90) CHARACTER SET ascii COLLATE ascii_bin",
                "varchar(90) COLLATE Latin1_General_BIN2",
                "TEXT"
            ],
            "64 letters of a type and 26 of the id"
        );
        let text = typeid.storage_advice()[1];
        assert_eq!(text.select_range(0, 1), None);
        assert!(
            text.notes()[0].contains("with different prefixes do not sort"),
            "{:?}",
            text.notes()
        );
        let compact = typeid.storage_advice()[0];
        assert!(compact.select_range(0, 1).is_some(), "a uuid has no type");
    }

    #[test]
    fn the_short_id_of_a_conjunction_has_a_column_of_its_own() {
        assert_eq!(
            columns(&preset("conjunction"), 2),
            [
                r#"varchar(22) COLLATE "C""#,
                "varchar(22) CHARACTER SET ascii COLLATE ascii_bin",
                "varchar(22) CHARACTER SET ascii COLLATE ascii_bin",
                "varchar(22) COLLATE Latin1_General_BIN2",
                "TEXT"
            ]
        );
        let advice = |name| preset(name).storage_advice().len();
        assert_eq!([advice("conjunction"), advice("snowflake")], [15, 10]);
    }

    #[test]
    fn quotes_and_backslashes_in_a_prefix_are_escaped() {
        let format = custom(
            "{ name = 'a', kind = 'random', bits = 4 }",
            r#"{ kind = 'hex_padded', prefix = "o'\\" }"#,
        );
        let text = |database: Database| {
            let advice = format
                .storage_advice()
                .into_iter()
                .filter(|advice| advice.database == database)
                .nth(1);
            advice.expect("two ways").literal(1)
        };
        assert_eq!(text(Database::PostgreSql), r"'o''\1'");
        assert_eq!(text(Database::MariaDb), r"'o''\\1'");
    }
}
