//! Ids as bytes: encoded while they are sent, in bounded memory, with the length known before.

use std::mem;
use std::sync::Arc;

use super::media_type::MediaType;
use super::pieces::{LongBody, PieceThread, Pieces};
use super::rows::{ROW_LEN_MAX, row_len, rows_max, write_row};
use crate::id::{Encoding, Format, IdBlock, Prefix, Rule};
use crate::minting::Batch;
use crate::service::BulkPass;

/// Bytes of one piece of a long answer; a few more, since ids are not cut. Fewer would cost more system calls, more would
/// not stay in the processor's cache until they are sent.
const PIECE_LEN: usize = 256 * 1024;

/// Answers whose length is not known before the ids are drawn are built whole up to this length.
const BUILT_LEN_MAX: usize = 1024 * 1024;

/// Room for what stands before the first id of nearly every answer.
const HEAD_ROOM: usize = 96;

/// Ids computed at once in a long answer: enough to forget what the first one costs.
const IDS_AT_ONCE: usize = 512;

/// The same in an answer of no more ids than that, which clears no room for others.
const FEW_IDS: usize = 32;

/// How the ids of one answer are written.
#[derive(Debug, Clone)]
pub(in crate::http) struct IdEncoder {
    form: Form,
    head: Head,
    tail: &'static str,
    /// What stands before each id that is a text.
    prefix: Option<Prefix>,
}

/// What stands before the first id.
#[derive(Debug, Clone, Copy)]
enum Head {
    Text(&'static str),
    Json {
        count: u64,
        label: Option<&'static str>,
    },
    Rows {
        count: u64,
        label: Option<&'static str>,
    },
}

/// What stands for an id.
#[derive(Debug, Clone, Copy)]
enum Form {
    /// Its text in the encoding of that position, with a separator before the next one.
    Text {
        encoding: usize,
        separator: Separator,
    },
    /// Its bytes, big-endian, as many as the greatest id needs.
    Bytes { width: usize },
    /// None: the ids at equal distances are one row, and there are about so many rows at most.
    Rows { rows_max: usize },
}

/// What stands between two texts. Arrays: a few bytes whose number the compiler knows are stored without a call.
#[derive(Debug, Clone, Copy)]
enum Separator {
    One([u8; 1]),
    Three([u8; 3]),
}

impl Separator {
    const fn len(self) -> usize {
        match self {
            Separator::One(bytes) => bytes.len(),
            Separator::Three(bytes) => bytes.len(),
        }
    }
}

impl IdEncoder {
    /// Ids of `format` in one of the media types of a mint answer.
    ///
    /// `label`: what JSON says about the ids beside their format.
    pub(in crate::http) fn new(
        media: MediaType,
        format: &Format,
        encoding: usize,
        count: u64,
        label: Option<&'static str>,
    ) -> IdEncoder {
        let text = |separator| Form::Text {
            encoding,
            separator,
        };
        let (form, head, tail) = match media {
            MediaType::Text => (text(Separator::One(*b"\n")), Head::Text(""), "\n"),
            MediaType::Ndjson => (text(Separator::Three(*b"\"\n\"")), Head::Text("\""), "\"\n"),
            MediaType::OctetStream => (
                Form::Bytes {
                    width: format.byte_width(),
                },
                Head::Text(""),
                "",
            ),
            _ => {
                let head = Head::Json { count, label };
                (text(Separator::Three(*b"\",\"")), head, "\"]}\n")
            }
        };
        IdEncoder {
            form,
            head,
            tail,
            prefix: None,
        }
    }

    /// Ids of a sequenced `format` as rows of numbers, where it has that number of lanes.
    pub(in crate::http) fn of_rows(
        format: &Format,
        lanes: usize,
        count: u64,
        label: Option<&'static str>,
    ) -> IdEncoder {
        let form = Form::Rows {
            rows_max: rows_max(format, lanes, count),
        };
        IdEncoder {
            form,
            head: Head::Rows { count, label },
            tail: "]}\n",
            prefix: None,
        }
    }

    /// The same with a prefix before each id, if ids are canonical texts.
    #[must_use]
    pub(in crate::http) fn behind(self, prefix: Option<Prefix>) -> IdEncoder {
        match self.form {
            Form::Text { encoding: 0, .. } => IdEncoder { prefix, ..self },
            Form::Text { .. } | Form::Bytes { .. } | Form::Rows { .. } => self,
        }
    }

    fn prefix(&self) -> &str {
        self.prefix.as_ref().map_or("", Prefix::as_str)
    }

    fn write_head(&self, format: &Format, out: &mut Vec<u8>) {
        match self.head {
            Head::Text(text) => out.extend_from_slice(text.as_bytes()),
            Head::Json { count, label } => {
                write_members(format, count, label, out);
                out.extend_from_slice(br#","ids":[""#);
            }
            Head::Rows { count, label } => {
                write_members(format, count, label, out);
                out.extend_from_slice(br#","rows":["#);
            }
        }
    }

    /// How many bytes follow the head; `None` when that depends on ids that are not drawn yet.
    fn len_after_head(&self, format: &Format, ids: &Batch) -> Option<u64> {
        let count = ids.count();
        let short_len = |len: usize| u64::try_from(len).expect("a few bytes");
        let ids_len = match self.form {
            Form::Bytes { width } => short_len(width).checked_mul(count)?,
            // Behind the last row stands no comma.
            Form::Rows { .. } => ids.rows_len(row_len)?.checked_sub(1)?,
            Form::Text {
                encoding,
                separator,
            } => {
                let separators = count
                    .checked_sub(1)?
                    .checked_mul(short_len(separator.len()))?;
                let prefixes = count.checked_mul(short_len(self.prefix().len()))?;
                let texts = ids.text_len(&format.encodings[encoding])?;
                texts.checked_add(separators)?.checked_add(prefixes)?
            }
        };
        ids_len.checked_add(short_len(self.tail.len()))
    }

    /// How much memory the first piece of an answer of `count` ids takes.
    pub(in crate::http) fn first_piece_len_max(&self, count: u64, format: &Format) -> usize {
        let whole = self.room_for(usize::try_from(count).unwrap_or(usize::MAX), format);
        let is_length_known = format.rule == Rule::Sequenced || self.is_fixed(format);
        let most = if is_length_known {
            IdPieces::PIECE_LEN_MAX
        } else {
            BUILT_LEN_MAX + PIECE_LEN
        };
        HEAD_ROOM + whole.min(most)
    }

    /// Whether all ids of a format have the same length.
    fn is_fixed(&self, format: &Format) -> bool {
        match self.form {
            Form::Bytes { .. } => true,
            Form::Rows { .. } => false,
            Form::Text { encoding, .. } => format.encodings[encoding].fixed_len().is_some(),
        }
    }

    /// The most bytes that `count` ids can take, with all that stands between and after them.
    fn room_for(&self, count: usize, format: &Format) -> usize {
        let ids_len = match self.form {
            Form::Bytes { width } => IdBlock::bytes_len_max(count, width),
            Form::Rows { rows_max } => count.min(rows_max).saturating_mul(ROW_LEN_MAX),
            Form::Text {
                encoding,
                separator,
            } => format.encodings[encoding]
                .block_len_max(count, self.prefix().len() + separator.len()),
        };
        ids_len.saturating_add(self.tail.len())
    }

    /// Writes ids to `out` until it is `len_max` long or they are all taken: then the tail as well, and says so.
    fn write(&self, format: &Format, ids: &mut Batch, out: &mut Vec<u8>, len_max: usize) -> bool {
        if ids.count() <= FEW_IDS as u64 {
            self.write_blocks::<FEW_IDS>(format, ids, out, len_max)
        } else {
            self.write_blocks::<IDS_AT_ONCE>(format, ids, out, len_max)
        }
    }

    fn write_blocks<const BLOCK: usize>(
        &self,
        format: &Format,
        ids: &mut Batch,
        out: &mut Vec<u8>,
        len_max: usize,
    ) -> bool {
        let mut computed = [0_u128; BLOCK];
        while out.len() < len_max && ids.count() > 0 {
            match self.form {
                Form::Bytes { width } => ids.next_block(&mut computed).write_bytes(width, out),
                Form::Text {
                    encoding,
                    separator: Separator::One(separator),
                } => {
                    self.write_texts(
                        &format.encodings[encoding],
                        ids.next_block(&mut computed),
                        separator,
                        out,
                    );
                }
                Form::Text {
                    encoding,
                    separator: Separator::Three(separator),
                } => {
                    self.write_texts(
                        &format.encodings[encoding],
                        ids.next_block(&mut computed),
                        separator,
                        out,
                    );
                }
                Form::Rows { .. } => ids.next_row().iter().for_each(|row| write_row(row, out)),
            }
        }
        if ids.count() > 0 {
            return false;
        }
        match self.form {
            Form::Text { separator, .. } => out.truncate(out.len() - separator.len()),
            Form::Rows { .. } => out.truncate(out.len() - b",".len()),
            Form::Bytes { .. } => {}
        }
        out.extend_from_slice(self.tail.as_bytes());
        true
    }
}

impl IdEncoder {
    #[inline]
    fn write_texts<const SEAM: usize>(
        &self,
        encoding: &Encoding,
        block: IdBlock<'_>,
        seam: [u8; SEAM],
        out: &mut Vec<u8>,
    ) {
        match &self.prefix {
            None => encoding.write_block(block, seam, out),
            Some(prefix) => encoding.write_block_behind(prefix.as_str(), block, seam, out),
        }
    }
}

/// What JSON says about ids before their list.
#[inline]
fn write_members(format: &Format, count: u64, label: Option<&'static str>, out: &mut Vec<u8>) {
    let mut write = |text: &str| out.extend_from_slice(text.as_bytes());
    write(r#"{"format":""#);
    write(&format.name);
    write(r#"","count":"#);
    write(itoa::Buffer::new().format(count));
    if let Some(label) = label {
        write(r#","label":""#);
        write(label);
        write(r#"""#);
    }
}

/// Ids as an answer has them.
pub(super) enum EncodedIds {
    /// All of them.
    Whole(Vec<u8>),
    /// To be written while they are sent.
    InPieces(Box<LongBody<IdPieces>>),
}

/// Encodes ids: all at once where they fit into one piece, else as the pass allows.
pub(super) fn encode_ids(
    encoder: IdEncoder,
    format: &Arc<Format>,
    mut ids: Batch,
    pass: Option<BulkPass>,
) -> EncodedIds {
    let room = encoder.room_for(usize::try_from(ids.count()).unwrap_or(usize::MAX), format);
    let mut head = Vec::with_capacity(HEAD_ROOM + if room <= PIECE_LEN { room } else { 0 });
    encoder.write_head(format, &mut head);
    if room <= PIECE_LEN {
        encoder.write(format, &mut ids, &mut head, usize::MAX);
        return EncodedIds::Whole(head);
    }
    let head_len = u64::try_from(head.len()).expect("a few bytes");
    let len = encoder
        .len_after_head(format, &ids)
        .and_then(|after| after.checked_add(head_len));
    if len.is_none() && encoder.write(format, &mut ids, &mut head, BUILT_LEN_MAX) {
        return EncodedIds::Whole(head);
    }
    let pieces = IdPieces {
        encoder,
        format: Arc::clone(format),
        ids,
        head,
        pass,
    };
    EncodedIds::InPieces(Box::new(LongBody::new(pieces, None, len)))
}

/// Ids that are written in pieces.
pub struct IdPieces {
    encoder: IdEncoder,
    format: Arc<Format>,
    ids: Batch,
    /// What is written already of the first piece, which is written only when somebody takes it.
    head: Vec<u8>,
    /// The leave to work so long.
    pass: Option<BulkPass>,
}

impl Pieces for IdPieces {
    fn resume(&mut self) {
        self.pass.iter_mut().for_each(BulkPass::resume);
    }

    fn pause(&mut self) {
        self.pass.iter_mut().for_each(BulkPass::pause);
    }

    // Many at once would each keep a thread of all connections for milliseconds, and a single mint would wait for them all.
    fn thread(&self) -> PieceThread {
        let aside = self.pass.as_ref().and_then(BulkPass::aside);
        aside.map_or(PieceThread::OfConnection, |requests| {
            PieceThread::Aside(Arc::clone(requests))
        })
    }

    // No id is longer than a few hundred bytes, and few are: a block of them fits into a quarter of a piece.
    const PIECE_LEN_MAX: usize = PIECE_LEN + PIECE_LEN / 4;

    fn next_piece(&mut self) -> (Vec<u8>, bool) {
        let mut piece = mem::take(&mut self.head);
        if piece.len() < PIECE_LEN {
            piece.reserve_exact(PIECE_LEN + self.encoder.room_for(IDS_AT_ONCE, &self.format));
        }
        let is_last = self
            .encoder
            .write(&self.format, &mut self.ids, &mut piece, PIECE_LEN);
        (piece, is_last)
    }
}
