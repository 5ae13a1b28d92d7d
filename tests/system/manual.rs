//! Checks the manual pages with mandoc, and the shell completions with three shells.

use std::fs;
use std::process::Command;

use crate::console::commands_below;
use crate::tools::succeed;
use idmint_testing::service::{Home, idmint};

fn completions(shell: &str) -> String {
    succeed(&mut idmint(&["completions", shell]))
}

/// Returns the names of the commands that the program lists in its help.
fn commands() -> Vec<String> {
    let help = succeed(&mut idmint(&["--help"]));
    let (_, list) = help.split_once("Commands:\n").expect("a list of commands");
    let (list, _) = list.split_once("\n\n").expect("an end of the list");
    let is_of_a_command = |line: &&str| line.starts_with("  ") && !line.starts_with("   ");
    let names = list
        .lines()
        .filter(is_of_a_command)
        .filter_map(|line| line.split_whitespace().next());
    names
        .filter(|name| *name != "help")
        .map(str::to_owned)
        .collect()
}

#[test]
fn the_manual_has_a_page_for_each_command_and_mandoc_finds_no_fault() {
    let home = Home::new();
    let folder = home.path("man");
    succeed(idmint(&["man"]).arg(&folder));
    let mut pages: Vec<_> = fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    pages.sort();
    succeed(
        Command::new("mandoc")
            .args(["-T", "lint", "-W", "warning"])
            .args(&pages),
    );
    let commands = commands();
    assert!(commands.len() > 15, "{commands:?}");
    for command in commands.iter().map(String::as_str).chain([
        "ledger-append",
        "fleet-fence-restore",
        "token-new",
    ]) {
        let page = folder.join(format!("idmint-{command}.1"));
        let read = succeed(Command::new("mandoc").args(["-T", "html"]).arg(page));
        assert!(
            read.contains("DESCRIPTION") && read.contains("SYNOPSIS"),
            "{command}: {read}"
        );
    }
    println!("{} pages", pages.len());
}

#[test]
fn bash_completes_commands_options_and_values() {
    let home = Home::new();
    let script = home.path("idmint.bash");
    fs::write(&script, completions("bash")).unwrap();
    let complete = |words: &[&str]| {
        let list = words.join(" ");
        let last = words.len() - 1;
        let typed = format!(
            "source {}; COMP_WORDS=({list} ''); COMP_CWORD={}; _idmint idmint '' '{}'; printf '%s\\n' \"${{COMPREPLY[@]}}\"",
            script.display(),
            last + 1,
            words[last]
        );
        succeed(Command::new("bash").args(["--norc", "-c", &typed]))
    };
    let offered = complete(&["idmint"]);
    for command in commands() {
        assert!(
            offered.lines().any(|line| line == command),
            "{command} is not in {offered}"
        );
    }
    assert!(complete(&["idmint", "fleet"]).contains("fence-restore"));
    assert!(complete(&["idmint", "completions"]).contains("zsh"));
}

#[test]
fn zsh_and_fish_complete_commands_and_options() {
    let home = Home::new();
    fs::write(home.path("_idmint"), completions("zsh")).unwrap();
    fs::write(home.path("idmint.fish"), completions("fish")).unwrap();
    let folder = home.path("").display().to_string();

    succeed(
        Command::new("zsh")
            .args(["-f", "-n"])
            .arg(home.path("_idmint")),
    );
    let loaded = format!(
        "fpath=('{folder}' $fpath); autoload -Uz compinit; compinit -u -D; print $_comps[idmint]; \
                          autoload +X _idmint; print ${{#functions[_idmint]}}"
    );
    let told = succeed(Command::new("zsh").args(["-f", "-c", &loaded]));
    assert!(told.starts_with("_idmint\n"), "{told}");
    let script = completions("zsh");
    for command in commands() {
        assert!(
            script.contains(&format!("'{command}:")),
            "zsh does not know {command}"
        );
    }

    let fish = |typed: &str| {
        let asked = format!("source '{folder}idmint.fish'; complete --do-complete '{typed}'");
        succeed(Command::new("fish").args(["--no-config", "-c", &asked]))
    };
    let offered = fish("idmint ");
    for command in commands() {
        assert!(
            offered
                .lines()
                .any(|line| line.split('\t').next() == Some(&command)),
            "{command} is not in {offered}"
        );
    }
    assert!(fish("idmint serve --da").contains("--data-dir"));
    assert!(fish("idmint token ").contains("new"));
}

#[test]
fn the_page_says_how_what_a_release_has_is_installed() {
    let commands = commands_below("docs/START.md", "### From a release");
    let home = Home::new();
    for folder in ["man", "completions"] {
        fs::create_dir(home.path(folder)).unwrap();
    }
    fs::copy(env!("CARGO_BIN_EXE_idmint"), home.path("idmint")).unwrap();
    succeed(idmint(&["man"]).arg(home.path("man")));
    for (file, shell) in [
        ("idmint", "bash"),
        ("_idmint", "zsh"),
        ("idmint.fish", "fish"),
    ] {
        fs::write(home.path("completions").join(file), completions(shell)).unwrap();
    }
    let root = home.path("root");
    fs::create_dir_all(root.join("usr/local/bin")).unwrap();
    for (command, _) in &commands {
        let typed = command.replace(" /usr/", &format!(" {}/usr/", root.display()));
        succeed(
            Command::new("bash")
                .args(["-c", &typed])
                .current_dir(home.path("")),
        );
    }
    assert_eq!(commands.len(), 5);
    let there = [
        "usr/local/bin/idmint",
        "usr/local/share/man/man1/idmint-serve.1",
        "usr/share/fish/vendor_completions.d/idmint.fish",
    ];
    for file in there {
        assert!(root.join(file).is_file(), "{file}");
    }
}
