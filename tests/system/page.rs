//! Uses the web page in a browser, as people do. `page.py` controls Debian's Chromium.
//!
//! With `UPDATE_DOCS=1`, the screenshots in `docs/images` are taken again. Look at them before you
//! commit them.

use std::fs;
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::tools::succeed;
use idmint_testing::authority::Authority;
use idmint_testing::http1::{Client, request};
use idmint_testing::loopback::address_of_its_own;
use idmint_testing::service::{Home, Service, idmint, run, until};

/// Runs a scenario of `page.py`, and returns its output. The first argument is the address of the
/// page.
fn use_page(scenario: &str, args: &[&str]) -> String {
    let ours = Path::new(env!("CARGO_MANIFEST_DIR"));
    let python = ours.join("target/tools/playwright/bin/python");
    assert!(
        python.is_file(),
        "playwright is there: installed by .ci/install-playwright"
    );
    let mut command = Command::new(python);
    command
        .current_dir(ours)
        .env("PYTHONDONTWRITEBYTECODE", "1");
    let printed = succeed(command.arg("tests/system/page.py").arg(scenario).args(args));
    println!("{printed}");
    assert!(printed.ends_with("done\n"), "{printed}");
    printed
}

/// Returns how many items of the kind `what` the scenario says it has checked.
fn looked_at(printed: &str, what: &str) -> u64 {
    let parts = printed.split([',', '\n']).map(str::trim);
    let count = parts
        .filter_map(|part| part.strip_suffix(what))
        .find_map(|count| count.trim().parse().ok());
    count.unwrap_or_else(|| panic!("it does not say how many {what}: {printed}"))
}

fn service(home: &Home, settings: &str) -> Service {
    let service = Service::start(home.serve_with(settings));
    service.wait_until_ready();
    service
}

/// Starts a service with numbers in `series_count` series. Two of the numbers are void. The service
/// also has three special series: a closed one, a closed one without numbers, and one of the kind
/// `blocks`.
fn service_with_numbers(home: &Home, series_count: usize) -> Service {
    let service = service(
        home,
        "[numbers.invoice]\npattern = 'acme-*'\ntext = 'INV-{series}-{n:05}'\n\
         [numbers.rows]\npattern = 'table-*'\nkind = 'blocks'",
    );
    let mut client = Client::connect(service.address());
    let mut post = |line: &str, body: &str| {
        let answer = client.exchange(request(
            &format!("POST {line}"),
            "idempotency-key: a\r\n",
            body,
        ));
        assert_eq!(answer.status, 201, "{line}: {}", answer.text());
    };
    post("/numbers/acme-2026?count=253", "");
    post(
        "/numbers/acme-2026/2/void",
        r#"{"reason":"the order was cancelled"}"#,
    );
    post(
        "/numbers/acme-2026/103/void",
        "{\"reason\":\"<b>lost\u{202e}</b>\"}",
    );
    for at in 1..series_count {
        post(&format!("/numbers/shop-{at}"), "");
    }
    post("/numbers/till-1", "");
    post("/numbers/till-1/close", "");
    post("/numbers/till-2/close", "");
    let block = client.exchange(request("POST /numbers/table-rows?count=50", "", ""));
    assert_eq!(block.status, 201, "{}", block.text());
    service
}

fn address_of(service: &Service) -> String {
    format!("{}/", service.url())
}

#[test]
fn every_view_is_sound_in_every_guise() {
    let home = Home::new();
    let printed = use_page("views", &[&address_of(&service_with_numbers(&home, 3))]);
    assert!(looked_at(&printed, "views") >= 90, "{printed}");
    assert!(looked_at(&printed, "axe rules") >= 1_000, "{printed}");
}

#[test]
fn every_kind_of_paste_gets_its_card_or_table() {
    let home = Home::new();
    let printed = use_page("pastes", &[&address_of(&service(&home, ""))]);
    assert!(looked_at(&printed, "pastes") >= 60, "{printed}");
    assert!(looked_at(&printed, "kinds") >= 35, "{printed}");
}

#[test]
fn texts_are_split_in_linear_time() {
    let home = Home::new();
    let printed = use_page("splitter", &[&address_of(&service(&home, ""))]);
    assert!(looked_at(&printed, "hostile texts") >= 15, "{printed}");
}

#[test]
fn a_browser_loads_less_than_60_kb_for_each_view() {
    let home = Home::new();
    use_page("weight", &[&address_of(&service_with_numbers(&home, 3))]);
}

#[test]
fn back_and_reload_restore_the_view_and_unknown_fragments_show_the_start() {
    let home = Home::new();
    use_page("history", &[&address_of(&service(&home, ""))]);
}

#[test]
fn a_phone_shows_the_answer_above_the_fold_and_a_column_in_itself() {
    let home = Home::new();
    use_page("phone", &[&address_of(&service(&home, ""))]);
}

#[test]
fn all_that_the_page_does_can_be_done_with_a_mouse() {
    let home = Home::new();
    use_page("by_mouse", &[&address_of(&service(&home, ""))]);
}

#[test]
fn all_that_the_page_does_can_be_done_without_a_mouse() {
    let home = Home::new();
    use_page("by_keyboard", &[&address_of(&service(&home, ""))]);
}

#[test]
fn rows_are_sorted_across_formats_and_linked_in_the_format_of_their_column() {
    let home = Home::new();
    use_page("rows", &[&address_of(&service(&home, ""))]);
}

#[test]
fn the_ids_of_a_span_of_time_are_those_of_the_newest_request() {
    let home = Home::new();
    use_page("spans", &[&address_of(&service(&home, ""))]);
}

#[test]
fn numbers_without_gaps_are_shown_as_an_auditor_reads_them() {
    let (home, empty) = (Home::new(), Home::new());
    use_page(
        "numbers",
        &[&address_of(&service_with_numbers(&home, 1_021))],
    );
    use_page("no_numbers", &[&address_of(&service(&empty, ""))]);
}

#[test]
fn columns_files_and_hostile_texts_are_read_and_stay_text() {
    let home = Home::new();
    let printed = use_page("columns", &[&address_of(&service(&home, ""))]);
    assert!(looked_at(&printed, "hostile texts") >= 10, "{printed}");
}

#[test]
fn a_token_is_asked_for_refused_given_and_kept_in_memory_alone() {
    let home = Home::new();
    let tokens = home.path("tokens.toml");
    let token = |name: &str, scopes: &str| {
        let made = run(idmint(&[
            "token",
            "new",
            "--name",
            name,
            "--scopes",
            scopes,
            "--file",
            tokens.to_str().unwrap(),
        ]));
        made.assert(0, &[]);
        made.out.trim().to_owned()
    };
    let (all, reader) = (token("all", "mint,decode"), token("reader", "decode"));
    let service = Service::start(home.serve_with(&format!("http.tokens = '{}'", tokens.display())));
    service.wait_until_ready();
    use_page("tokens", &[&address_of(&service), &all, &reader]);
}

/// An nginx that runs as a proxy in front of the page. Dropping this value ends nginx.
struct Proxy(Child);

impl Drop for Proxy {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn behind_a_proxy_with_tls_and_a_prefix_the_page_reads_and_mints() {
    let home = Home::new();
    let service = service_with_numbers(&home, 1);
    let address = address_of_its_own();
    let [certificate, key] = Authority::new("proxies")
        .sign(&[&address.ip().to_string()])
        .write(&home, "proxy");
    let folder = home.path("nginx");
    fs::create_dir(&folder).unwrap();
    let configuration = format!(
        "daemon off;\nmaster_process off;\npid {folder}/pid;\nerror_log stderr;\nevents {{}}\nhttp {{\n  access_log off;\n  \
         client_body_temp_path {folder}/bodies;\n  proxy_temp_path {folder}/answers;\n  fastcgi_temp_path {folder}/fastcgi;\n  \
         uwsgi_temp_path {folder}/uwsgi;\n  scgi_temp_path {folder}/scgi;\n  server {{\n    listen {address} ssl;\n    \
         ssl_certificate {certificate};\n    ssl_certificate_key {key};\n    client_max_body_size 8m;\n    \
         location /tools/ids/ {{\n      proxy_pass {service}/;\n      proxy_set_header Host $http_host;\n    }}\n  }}\n}}\n",
        folder = folder.display(),
        certificate = certificate.display(),
        key = key.display(),
        service = service.url(),
    );
    let file = home.path("nginx.conf");
    fs::write(&file, configuration).unwrap();
    let mut command = Command::new("/usr/sbin/nginx");
    command
        .arg("-p")
        .arg(&folder)
        .arg("-c")
        .arg(&file)
        .stdin(Stdio::null());
    let _proxy = Proxy(
        command
            .spawn()
            .expect("nginx runs: Debian package nginx-light, installed by .ci/install-packages"),
    );
    until("the proxy answers", || TcpStream::connect(address).ok());
    let before = service.metric("idmint_ids_minted_total{format=\"snowflake\"}");
    use_page("behind_proxy", &[&format!("https://{address}/tools/ids/")]);
    let minted = service.metric("idmint_ids_minted_total{format=\"snowflake\"}");
    assert!(minted >= before + 10.0, "{before} and then {minted}");
}

#[test]
fn a_file_that_cannot_be_read_and_a_redirect_are_explained() {
    let home = Home::new();
    use_page("troubles", &[&address_of(&service(&home, ""))]);
}

#[test]
fn a_node_that_cannot_mint_says_so_and_reads_all_the_same() {
    let home = Home::new();
    let mut command = home.serve();
    command.args(["--floor", "2200-01-01T00:00:00Z"]);
    let service = Service::start(command);
    service.log_once_it_says("this node does not mint yet");
    use_page("cannot_mint", &[&address_of(&service)]);
    assert!(
        service.metric("idmint_ids_minted_total{format=\"snowflake\"}") < 1.0,
        "nothing was minted"
    );
}
