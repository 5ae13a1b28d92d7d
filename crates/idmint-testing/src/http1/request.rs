//! Creates requests as bytes for a server, and reads them for a proxy.

use std::io::BufRead;

/// Returns a request. The method and the target are one text (`GET /path`), and `headers` consists
/// of complete lines.
///
/// If `body` is not empty, a Content-Length is added. A Content-Type for JSON is also added, unless
/// `headers` has one.
pub fn request(method_and_target: &str, headers: &str, body: &str) -> String {
    let len = if body.is_empty() {
        String::new()
    } else {
        format!("content-length: {}\r\n", body.len())
    };
    let is_typed = body.is_empty() || headers.to_ascii_lowercase().contains("content-type:");
    let kind = if is_typed {
        ""
    } else {
        "content-type: application/json\r\n"
    };
    format!("{method_and_target} HTTP/1.1\r\nhost: localhost\r\n{len}{kind}{headers}\r\n{body}")
}

/// Returns a POST request with a JSON body.
pub fn post_json(target: &str, headers: &str, json: &str) -> String {
    request(
        &format!("POST {target}"),
        &format!("content-type: application/json\r\n{headers}"),
        json,
    )
}

/// Reads one request, both its head and its body. Returns `None` if the other side has closed the
/// connection.
pub fn read_request(input: &mut impl BufRead) -> Option<Vec<u8>> {
    let (mut request, mut body_len) = (Vec::new(), 0);
    loop {
        let line_begin = request.len();
        if input.read_until(b'\n', &mut request).ok()? == 0 {
            return None;
        }
        let line = String::from_utf8_lossy(&request[line_begin..]);
        if line == "\r\n" {
            break;
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            body_len = value
                .trim()
                .parse()
                .expect("clients write lengths as numbers");
        }
    }
    let head_len = request.len();
    request.resize(head_len + body_len, 0);
    input.read_exact(&mut request[head_len..]).ok()?;
    Some(request)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_read_as_they_were_written() {
        let requests = [
            request("GET /a", "", ""),
            request("POST /b", "x: y\r\n", "a body"),
            request("GET /c", "", ""),
        ];
        let stream = requests.concat();
        let mut input = stream.as_bytes();
        for request in requests {
            assert_eq!(read_request(&mut input), Some(request.into_bytes()));
        }
        assert_eq!(read_request(&mut input), None);
    }
}
