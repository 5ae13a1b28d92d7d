//! Tests the Go client, `clients/go/idmint.go`.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Once;

use super::hostile::assert_program_copes;
use super::rounds::assert_program_mints_while_services_are_killed;
use super::secured::Secured;
use super::speed::print_nanos_of_next;
use crate::tools::succeed;
use idmint_testing::service::Home;

/// Compiles a program of this folder together with the client, using Debian's Go. The result is in
/// `home`.
fn compiled(home: &Home, program: &str) -> Command {
    let ours = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (folder, programs) = (home.path("go"), ours.join("tests/system/prefetching/go"));
    for (from, to) in [
        (ours.join("clients/go/idmint.go"), "idmint/idmint.go"),
        (programs.join("mint.go"), "mint.go"),
        (programs.join("errors/errors.go"), "errors/errors.go"),
        (programs.join("hostile/hostile.go"), "hostile/hostile.go"),
        (programs.join("speed/speed.go"), "speed/speed.go"),
    ] {
        fs::create_dir_all(folder.join(to).parent().unwrap()).unwrap();
        fs::copy(from, folder.join(to)).unwrap();
    }
    fs::write(folder.join("go.mod"), "module ids\n\ngo 1.19\n").unwrap();
    let go = |tool: &str, args: &[&str]| {
        let mut command = Command::new(tool);
        command.args(args).current_dir(&folder);
        // Prevent Go from downloading anything, even another toolchain. Keep the build cache
        // outside of `home`, so that later runs can use it.
        command
            .env("GOFLAGS", "-mod=mod")
            .env("GOPROXY", "off")
            .env("GOTOOLCHAIN", "local");
        command.env("GOCACHE", ours.join("target/clients/go-cache"));
        command.env("STATICCHECK_CACHE", ours.join("target/clients/staticcheck"));
        assert_eq!(succeed(&mut command), "");
    };
    assert_eq!(
        succeed(Command::new("gofmt").arg("-l").arg(&folder)),
        "",
        "gofmt would write it otherwise"
    );
    go("go", &["vet", "./..."]);
    // Each test copies the same files, and the analysis is slow.
    static ANALYSIS: Once = Once::new();
    ANALYSIS.call_once(|| go("go-staticcheck", &["-checks", "all", "./..."]));
    go("go", &["build", "-o", "program", program]);
    Command::new(folder.join("program"))
}

#[test]
fn goroutines_get_each_id_once_while_services_are_killed() {
    let home = Home::new();
    assert_program_mints_while_services_are_killed(compiled(&home, "."));
}

#[test]
fn it_copes_with_a_hostile_server() {
    let home = Home::new();
    assert_program_copes(compiled(&home, "./hostile"));
}

#[test]
fn errors_say_what_to_mend_and_an_append_is_done_once() {
    let secured = Secured::start();
    let mut errors = compiled(&secured.home, "./errors");
    assert_eq!(succeed(errors.args(secured.arguments())), "done\n");
}

#[test]
fn the_time_of_a_next_is_told() {
    let home = Home::new();
    print_nanos_of_next("Go", compiled(&home, "./speed"));
}
