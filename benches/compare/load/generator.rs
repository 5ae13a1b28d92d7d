//! A load generator that repeats one request on many connections and measures each latency.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};

use super::connection::{Buffer, Connection};
use idmint_testing::http1::request;

/// A request, and the rule by which it is repeated.
#[derive(Debug, Clone)]
pub(crate) struct Workload {
    request: Vec<u8>,
    connections: usize,
    load_model: LoadModel,
    /// `true` if other clients read metrics and ledgers while the workload runs.
    pub(crate) is_read_beside: bool,
}

/// The rule that decides when the next request is sent.
#[derive(Debug, Clone, Copy)]
pub(crate) enum LoadModel {
    /// Each connection sends `depth` requests at once. It sends the next ones as soon as it has
    /// received all responses.
    Closed { depth: usize },
    /// The generator sends `per_second` requests per second, even if earlier ones have no response
    /// yet. A latency is counted from the time at which the request was due. Requests that wait for
    /// a slow one therefore count as slow, too.
    Open { per_second: u32 },
}

impl Workload {
    /// Returns a workload with one request at a time on each of 16 connections.
    pub(crate) fn of(method_and_target: &str, headers: &str, body: &str) -> Self {
        let request = request(method_and_target, headers, body).into_bytes();
        Self {
            request,
            connections: 16,
            load_model: LoadModel::Closed { depth: 1 },
            is_read_beside: false,
        }
    }

    pub(crate) fn connections(self, connections: usize) -> Self {
        Self {
            connections,
            ..self
        }
    }

    pub(crate) fn load_model(self, load_model: LoadModel) -> Self {
        Self { load_model, ..self }
    }

    /// Makes other clients read metrics and ledgers while this workload runs.
    pub(crate) fn beside_readers(self) -> Self {
        Self {
            is_read_beside: true,
            ..self
        }
    }
}

/// The results of one run of a load generator.
pub(crate) struct Tally {
    /// The number of responses with status 200.
    pub(crate) answered: u64,
    /// The number of responses with any other status.
    pub(crate) refused: u64,
    /// The status of the last response that did not have the status 200.
    pub(crate) refusal: u16,
    /// The total length of all response bodies, in bytes.
    pub(crate) bytes: u64,
    /// The latencies of all responses, in no particular order.
    pub(crate) latencies_ns: Vec<u64>,
    /// The time from the first request to the last response.
    pub(crate) passed: Duration,
}

/// A load generator with its connections, which stay open between two runs.
pub(crate) struct Generator {
    epoll: OwnedFd,
    connections: Vec<Connection>,
    buffer: Buffer,
    events: Vec<epoll::Event>,
    requests: Vec<u8>,
    load_model: LoadModel,
}

impl Generator {
    pub(crate) fn connect(address: SocketAddr, workload: &Workload) -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let connections = (0..workload.connections)
            .map(|_| Connection::to(address))
            .collect::<io::Result<Vec<_>>>()?;
        for (at, connection) in connections.iter().enumerate() {
            epoll::add(
                &epoll,
                connection,
                epoll::EventData::new_u64(at as u64),
                epoll::EventFlags::IN,
            )?;
        }
        let depth = match workload.load_model {
            LoadModel::Closed { depth } => depth,
            LoadModel::Open { .. } => 1,
        };
        let requests = workload.request.repeat(depth);
        let events = Vec::with_capacity(connections.len());
        Ok(Self {
            epoll,
            connections,
            buffer: Buffer::new(),
            events,
            requests,
            load_model: workload.load_model,
        })
    }

    /// Sends requests for the duration `time`, and then waits for the pending responses.
    ///
    /// # Errors
    /// Returns an error if a connection breaks, or if a response is not HTTP.
    pub(crate) fn run(&mut self, time: Duration) -> io::Result<Tally> {
        // Reserve space for a million latencies, so that the vector rarely grows while the time is
        // measured.
        let latencies_ns = Vec::with_capacity(1 << 20);
        let mut tally = Tally {
            answered: 0,
            refused: 0,
            refusal: 0,
            bytes: 0,
            latencies_ns,
            passed: Duration::ZERO,
        };
        let began = Instant::now();
        match self.load_model {
            LoadModel::Closed { depth } => self.run_closed(depth, began + time, &mut tally)?,
            LoadModel::Open { per_second } => self.run_open(per_second, began, time, &mut tally)?,
        }
        tally.passed = began.elapsed();
        Ok(tally)
    }

    fn run_closed(&mut self, depth: usize, end: Instant, tally: &mut Tally) -> io::Result<()> {
        for at in 0..self.connections.len() {
            self.send(at, depth, Instant::now())?;
        }
        let mut busy = self.connections.len();
        while busy > 0 {
            self.receive(None, tally, |generator, at| {
                let now = Instant::now();
                if now < end {
                    return generator.send(at, depth, now);
                }
                busy -= 1;
                Ok(())
            })?;
        }
        Ok(())
    }

    fn run_open(
        &mut self,
        per_second: u32,
        began: Instant,
        time: Duration,
        tally: &mut Tally,
    ) -> io::Result<()> {
        let gap = Duration::from_secs(1) / per_second;
        let mut due = began;
        let mut idle: VecDeque<usize> = (0..self.connections.len()).collect();
        while due < began + time || idle.len() < self.connections.len() {
            let now = Instant::now();
            while due <= now
                && due < began + time
                && let Some(at) = idle.pop_front()
            {
                self.send(at, 1, due)?;
                due += gap;
            }
            // Poll without blocking, because waking a blocked thread takes longer than many
            // responses take.
            self.receive(
                Some(&Timespec {
                    tv_sec: 0,
                    tv_nsec: 0,
                }),
                tally,
                |_, at| {
                    idle.push_back(at);
                    Ok(())
                },
            )?;
        }
        Ok(())
    }

    fn send(&mut self, at: usize, depth: usize, due: Instant) -> io::Result<()> {
        if !self.connections[at].send(&self.requests, depth, due)? {
            self.wait_for(at, epoll::EventFlags::IN | epoll::EventFlags::OUT)?;
        }
        Ok(())
    }

    fn wait_for(&self, at: usize, what: epoll::EventFlags) -> io::Result<()> {
        Ok(epoll::modify(
            &self.epoll,
            &self.connections[at],
            epoll::EventData::new_u64(at as u64),
            what,
        )?)
    }

    /// Reads the responses that are available. Calls `done` for each connection that has received
    /// all of its responses.
    fn receive(
        &mut self,
        wait: Option<&Timespec>,
        tally: &mut Tally,
        mut done: impl FnMut(&mut Self, usize) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut events = std::mem::take(&mut self.events);
        epoll::wait(&self.epoll, spare_capacity(&mut events), wait)?;
        for event in events.drain(..) {
            let (at, flags) = (event.data.u64(), event.flags);
            let at = usize::try_from(at).expect("it was the index of a connection");
            let connection = &mut self.connections[at];
            if flags.contains(epoll::EventFlags::OUT) && connection.send_rest(&self.requests)? {
                self.wait_for(at, epoll::EventFlags::IN)?;
            }
            // Every other event means that the connection must be read, even if the connection is
            // broken.
            if flags == epoll::EventFlags::OUT {
                continue;
            }
            let connection = &mut self.connections[at];
            let (due, mut answered) = (connection.due, None);
            connection.receive(&mut self.buffer, |answer| {
                let now = *answered.get_or_insert_with(Instant::now);
                tally
                    .latencies_ns
                    .push(u64::try_from((now - due).as_nanos()).expect("less than centuries"));
                match answer.status {
                    200 => tally.answered += 1,
                    status => (tally.refused, tally.refusal) = (tally.refused + 1, status),
                }
                tally.bytes += answer.body_len;
            })?;
            if answered.is_some() && connection.awaited == 0 {
                done(self, at)?;
            }
        }
        self.events = events;
        Ok(())
    }
}
