//! A proxy that cuts off responses at random positions. It records the complete responses of the
//! service.

use std::collections::HashMap;
use std::io::{BufReader, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::Value;

use idmint_testing::http1::{Answer, Client, read_request};

/// The responses of the service to the requests with one idempotency key.
#[derive(Debug, Default)]
pub(crate) struct Asked {
    /// The ids in the first response.
    ids: Value,
    /// The number of responses with ids, including those that were cut off.
    pub(crate) times: u64,
    /// `true` if the service has responded with 504, which means that it may still append.
    is_undecided: bool,
}

/// A proxy that runs in front of a service until the test process ends.
#[derive(Clone)]
pub(crate) struct CuttingProxy {
    pub(crate) address: SocketAddr,
    asked: Arc<Mutex<HashMap<String, Asked>>>,
}

impl CuttingProxy {
    /// Starts a proxy for a service. Two of three responses are cut off between their first and
    /// their last byte.
    pub(crate) fn before(service: SocketAddr) -> CuttingProxy {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let cutting = CuttingProxy {
            address: listener.local_addr().unwrap(),
            asked: Arc::default(),
        };
        let proxy = cutting.clone();
        std::thread::spawn(move || {
            for (number, stream) in listener.incoming().enumerate() {
                let (proxy, stream) = (proxy.clone(), stream.unwrap());
                let random = StdRng::seed_from_u64(number.try_into().unwrap());
                std::thread::spawn(move || proxy.pass(stream, service, random));
            }
        });
        cutting
    }

    /// Returns the recorded responses for each idempotency key.
    ///
    /// # Panics
    /// Panics if the service gave different responses to requests with the same key.
    pub(crate) fn asked(self) -> HashMap<String, Asked> {
        std::mem::take(&mut self.asked.lock().expect("one key has one answer"))
    }

    fn pass(&self, stream: TcpStream, service: SocketAddr, mut random: StdRng) {
        let (mut client, mut input) = (Client::connect(service), BufReader::new(&stream));
        while let Some(request) = read_request(&mut input) {
            let answer = client.exchange(&request);
            self.note(&request, &answer);
            let bytes = answer.to_bytes();
            let is_whole = random.random_ratio(1, 3);
            let len = if is_whole {
                bytes.len()
            } else {
                random.random_range(0..bytes.len())
            };
            if (&stream).write_all(&bytes[..len]).is_err() || !is_whole {
                let _ = stream.shutdown(Shutdown::Both);
                return;
            }
        }
    }

    /// Records a response, even if the caller will not receive all of it. The first response for a
    /// key must append, and every later one must repeat the first. After a 504, the first response
    /// with ids may already be a repetition.
    fn note(&self, request: &[u8], answer: &Answer) {
        if ![200, 201, 504].contains(&answer.status) {
            return;
        }
        let request = String::from_utf8_lossy(request);
        let key = request
            .lines()
            .find_map(|line| line.strip_prefix("idempotency-key: "))
            .expect("every append has one");
        let mut asked = self.asked.lock().expect("one key has one answer");
        let asked = asked.entry(key.to_owned()).or_default();
        if answer.status == 504 {
            asked.is_undecided = true;
            return;
        }
        let ids = answer.json()["ids"].take();
        if asked.times == 0 {
            asked.ids = ids.clone();
        }
        asked.times += 1;
        let is_repetition = asked.times > 1 || (asked.is_undecided && answer.status == 200);
        assert_eq!(
            (answer.status, &asked.ids),
            (if is_repetition { 200 } else { 201 }, &ids),
            "{key}"
        );
    }
}
