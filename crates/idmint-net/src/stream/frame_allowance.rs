//! Limits the HTTP/2 frames that carry no request: all frames except HEADERS, CONTINUATION, and
//! DATA frames with a body.
//!
//! A caller can send such frames at almost no cost. For each frame, however, the server must send a
//! response, scan all streams, or at least poll the connection. hyper and h2 accept any number of
//! them. This module therefore reads the frame headers before hyper does:
//! ```text
//! | length: 3 bytes | type: 1 | flags: 1 | stream: 4 | as many bytes as length says | length …
//! ```

use std::io;
use std::sync::Arc;

use idmint_service::{Shed, ShedCounts};

/// The maximum of the allowance. The allowance is the number of frames without a request, such as
/// PING, that a caller may still send. A new connection starts with the maximum.
const FULL: usize = 1_000;

/// The number of frames without a request that each request adds to the allowance. Examples are
/// window updates for the stream and for each frame of the response, and a cancellation.
const FOR_A_REQUEST: usize = 16;

/// The number of sent bytes that allow one more frame without a request, such as a window update.
const BYTES_FOR_ONE: usize = 1024;

/// The number of DATA bytes received from a caller that allow it one more frame without a request.
/// The bytes count even if their stream was reset.
const DATA_FOR_ONE: usize = 64;

/// The flag of a padded DATA frame.
const PADDED: u8 = 8;
/// The maximum number of bytes that padding adds to a DATA frame.
const PADDING_LEN_MAX: usize = 256;

/// The length of the preface that a client sends before its first frame.
const PREFACE_LEN: usize = 24;

const HEADER_LEN: usize = 9;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const CONTINUATION: u8 = 9;

/// The number of frames without a request, such as PING, that the caller of one HTTP/2 connection
/// may still send.
pub(crate) struct FrameAllowance {
    left: usize,
    /// The number of sent bytes that count towards one more frame without a request. That frame is
    /// added to `left` at [`BYTES_FOR_ONE`] bytes.
    sent: usize,
    /// The number of received DATA bytes that count towards one more frame without a request. That
    /// frame is added to `left` at [`DATA_FOR_ONE`] bytes.
    data: usize,
    /// The number of bytes to skip until the next frame header.
    skip: usize,
    header: [u8; HEADER_LEN],
    header_len: usize,
    counts: Arc<ShedCounts>,
}

impl FrameAllowance {
    pub(crate) fn new(counts: Arc<ShedCounts>) -> Self {
        Self {
            left: FULL,
            sent: 0,
            data: 0,
            skip: PREFACE_LEN,
            header: [0; HEADER_LEN],
            header_len: 0,
            counts,
        }
    }

    /// Scans the next `bytes` from the caller for frame headers. Each frame that carries no request
    /// uses up one frame of the allowance.
    ///
    /// # Errors
    /// Returns an error if the frames exceed the allowance. The error ends the connection.
    pub(super) fn spend_on(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let skipped = self.skip.min(rest.len());
            (self.skip, rest) = (self.skip - skipped, &rest[skipped..]);
            let taken = (HEADER_LEN - self.header_len).min(rest.len());
            let (of_header, after) = rest.split_at(taken);
            self.header[self.header_len..][..taken].copy_from_slice(of_header);
            (self.header_len, rest) = (self.header_len + taken, after);
            if self.header_len == HEADER_LEN {
                self.header_len = 0;
                self.look_at_header()?;
            }
        }
        Ok(())
    }

    fn look_at_header(&mut self) -> io::Result<()> {
        let [a, b, c, frame_type, flags, ..] = self.header;
        let len = u32::from_be_bytes([0, a, b, c]);
        self.skip = usize::try_from(len).expect("24 bits");
        match frame_type {
            HEADERS => self.refill(FOR_A_REQUEST),
            CONTINUATION => {}
            DATA => {
                let padding = if flags & PADDED == 0 {
                    0
                } else {
                    PADDING_LEN_MAX
                };
                let data = self.data + self.skip.saturating_sub(padding);
                self.data = data % DATA_FOR_ONE;
                self.spend()?;
                self.refill(data / DATA_FOR_ONE);
            }
            // Frames of unknown types also count as frames without a request. RFC 9113 section 5.5
            // requires that such frames are read and ignored.
            _ => self.spend()?,
        }
        Ok(())
    }

    fn spend(&mut self) -> io::Result<()> {
        self.left = self
            .left
            .checked_sub(1)
            .ok_or_else(|| io::Error::other(self.counts.count(Shed::Frames)))?;
        Ok(())
    }

    /// Counts `len` bytes sent to the caller. Every [`BYTES_FOR_ONE`] bytes allow one more frame
    /// without a request, because the caller acknowledges the bytes by window updates.
    pub(super) fn refill_for_bytes(&mut self, len: usize) {
        let sent = self.sent + len;
        self.refill(sent / BYTES_FOR_ONE);
        self.sent = sent % BYTES_FOR_ONE;
    }

    fn refill(&mut self, frames: usize) {
        self.left = (self.left + frames).min(FULL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRIORITY: u8 = 2;
    const RST_STREAM: u8 = 3;
    const SETTINGS: u8 = 4;
    const PING: u8 = 6;
    const WINDOW_UPDATE: u8 = 8;
    const UNKNOWN: u8 = 0xbb;

    fn frame(frame_type: u8, payload: &[u8]) -> Vec<u8> {
        let len = u8::try_from(payload.len()).expect("short");
        [&[0, 0, len, frame_type, 0, 0, 0, 0, 0], payload].concat()
    }

    fn allowance() -> (FrameAllowance, Arc<ShedCounts>) {
        let counts = Arc::new(ShedCounts::default());
        let mut allowance = FrameAllowance::new(Arc::clone(&counts));
        allowance
            .spend_on(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
            .expect("the preface");
        (allowance, counts)
    }

    #[test]
    fn frames_without_a_request_are_counted_however_they_are_cut() {
        let idle = [
            frame(PING, &[0; 8]),
            frame(SETTINGS, &[]),
            frame(DATA, &[]),
            frame(PRIORITY, &[0; 5]),
        ]
        .concat();
        for cut in 1..=idle.len() {
            let (mut allowance, counts) = allowance();
            let frames = std::iter::repeat_n(&idle, FULL / 4)
                .flatten()
                .copied()
                .collect::<Vec<u8>>();
            assert!(
                frames
                    .chunks(cut)
                    .all(|piece| allowance.spend_on(piece).is_ok()),
                "in pieces of {cut}"
            );
            assert!(allowance.spend_on(&frame(WINDOW_UPDATE, &[0; 4])).is_err());
            assert_eq!(counts.of(Shed::Frames), 1);
        }
    }

    #[test]
    fn frames_that_cost_only_this_side_are_counted_whatever_their_type() {
        for idle in [
            frame(RST_STREAM, &[0, 0, 0, 8]),
            frame(UNKNOWN, &[]),
            frame(UNKNOWN, &[7; 100]),
        ] {
            let (mut allowance, counts) = allowance();
            allowance
                .spend_on(&idle.repeat(FULL))
                .expect("as many as may come");
            assert!(allowance.spend_on(&idle).is_err(), "type {}", idle[3]);
            assert_eq!(counts.of(Shed::Frames), 1);
        }
    }

    #[test]
    fn data_is_worth_its_bytes_and_padding_is_none() {
        let padded = |len: usize| {
            let mut frame = frame(DATA, &vec![200; len]);
            frame[4] = PADDED;
            frame
        };
        for idle in [frame(DATA, b"x"), padded(201), padded(255)] {
            let (mut allowance, counts) = allowance();
            allowance
                .spend_on(&idle.repeat(FULL))
                .expect("as many as may come");
            assert!(
                (0..=FULL / 32).any(|_| allowance.spend_on(&idle).is_err()),
                "{} bytes",
                idle.len()
            );
            assert_eq!(counts.of(Shed::Frames), 1);
        }
        let (mut allowance, _) = allowance();
        allowance
            .spend_on(&frame(DATA, &[7; DATA_FOR_ONE]).repeat(100_000))
            .expect("a body");
        allowance
            .spend_on(&frame(DATA, b"a line of some 40 bytes, as one may send").repeat(2_000))
            .expect("and its lines");
    }

    #[test]
    fn whoever_cancels_each_request_keeps_the_connection() {
        let (mut allowance, counts) = allowance();
        let cancelled = [
            frame(HEADERS, b"a request"),
            frame(UNKNOWN, b"grease"),
            frame(RST_STREAM, &[0, 0, 0, 8]),
        ]
        .concat();
        allowance
            .spend_on(&cancelled.repeat(10_000))
            .expect("each was a request");
        assert_eq!(counts.of(Shed::Frames), 0);
    }

    #[test]
    fn requests_and_what_is_sent_allow_more() {
        let (mut allowance, _) = allowance();
        for _ in 0..10_000 {
            let update = frame(WINDOW_UPDATE, &[0; 4]);
            allowance
                .spend_on(&[frame(HEADERS, b"a request"), frame(DATA, b"its body")].concat())
                .expect("a request");
            allowance
                .spend_on(&update.repeat(FOR_A_REQUEST - 1))
                .expect("a request allows them");
            allowance.refill_for_bytes(3 * BYTES_FOR_ONE / 2);
            allowance.refill_for_bytes(BYTES_FOR_ONE / 2);
            allowance
                .spend_on(&update.repeat(2))
                .expect("2 KiB allow two");
        }
    }
}
