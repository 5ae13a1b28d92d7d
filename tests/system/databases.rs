//! Database servers and programs for tests: SQLite, DuckDB, PostgreSQL and MariaDB. Each server has
//! a temporary folder and no network access.

use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};

use rustix::process::{Pid, Signal, geteuid, kill_process};
use tempfile::TempDir;

use crate::tools::output_of;
use idmint_testing::service::until;

/// Runs a script in an SQLite database in memory. Returns the printed lines, in which values are
/// SQL literals.
pub(crate) fn sqlite(script: &str) -> Vec<String> {
    let mut sqlite = Command::new("sqlite3");
    sqlite.args(["-batch", "-bail", "-quote", ":memory:"]);
    lines_of(feed(sqlite, script, "sqlite3"))
}

/// Runs a script in DuckDB. Returns the printed lines, in which values are separated by `|`.
pub(crate) fn duckdb(script: &str) -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut python = Command::new(root.join("target/tools/duckdb/bin/python"));
    python.arg(root.join("tests/system/run_in_duckdb.py"));
    lines_of(feed(
        python,
        script,
        "DuckDB, installed by .ci/install-duckdb,",
    ))
}

/// A database server, which ends when this value is dropped.
pub(crate) struct Server {
    process: Child,
    /// The signal that makes the server exit cleanly and immediately.
    end: Signal,
    client: Vec<PathBuf>,
    home: TempDir,
}

impl Server {
    /// Starts PostgreSQL. Its default collation is that of a language, as in most installations.
    pub(crate) fn postgresql() -> Server {
        let programs = newest_postgresql();
        let home = folder_of("postgres");
        let data = home.path().join("data");
        let mut initdb = as_user("postgres", &programs.join("initdb"));
        initdb.args([
            "--auth=trust",
            "--username=postgres",
            "--no-sync",
            "--encoding=UTF8",
            "--locale=C.UTF-8",
        ]);
        initdb
            .args(["--locale-provider=icu", "--icu-locale=en-US"])
            .arg("--pgdata")
            .arg(&data);
        assert_success(output_of(&mut initdb), "initdb");
        let mut postgres = as_user("postgres", &programs.join("postgres"));
        postgres.arg("-D").arg(&data).arg("-k").arg(home.path());
        postgres.args(["-c", "listen_addresses=", "-c", "fsync=off"]);
        let psql = [
            "--no-psqlrc",
            "--quiet",
            "--tuples-only",
            "--no-align",
            "--set=ON_ERROR_STOP=1",
            "--username=postgres",
        ];
        let mut client = vec![
            programs.join("psql"),
            PathBuf::from("--host"),
            home.path().to_owned(),
        ];
        client.extend(psql.map(PathBuf::from));
        Server::start(postgres, Signal::INT, client, home)
    }

    /// Starts MariaDB, which also understands SQL for MySQL.
    pub(crate) fn mariadb() -> Server {
        let home = folder_of("mysql");
        let data = home.path().join("data");
        let datadir = format!("--datadir={}", data.display());
        let mut install = as_user("mysql", Path::new("mariadb-install-db"));
        install
            .args([
                "--no-defaults",
                "--auth-root-authentication-method=normal",
                "--skip-test-db",
            ])
            .arg(&datadir);
        assert_success(output_of(&mut install), "mariadb-install-db");
        let socket = format!("--socket={}", home.path().join("socket").display());
        let mut mariadbd = as_user("mysql", Path::new("/usr/sbin/mariadbd"));
        mariadbd.args([
            "--no-defaults",
            "--skip-networking",
            "--innodb-flush-log-at-trx-commit=0",
            &datadir,
            &socket,
        ]);
        mariadbd.arg(format!("--pid-file={}", home.path().join("pid").display()));
        let client = [
            "mariadb",
            "--no-defaults",
            "--user=root",
            &socket,
            "--batch",
            "--raw",
            "--skip-column-names",
            "--binary-as-hex",
            "test",
        ];
        // Create the folder of the database, because a new server of MariaDB has no database.
        let owner = as_user("mysql", Path::new("mkdir"))
            .arg(data.join("test"))
            .status();
        assert!(owner.expect("mkdir runs").success());
        Server::start(
            mariadbd,
            Signal::TERM,
            client.map(PathBuf::from).to_vec(),
            home,
        )
    }

    fn start(mut program: Command, end: Signal, client: Vec<PathBuf>, home: TempDir) -> Server {
        let process = program
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let server = Server {
            process: process.expect("the server runs"),
            end,
            client,
            home,
        };
        until("the server answers", || {
            let (program, args) = server.client.split_first().expect("a program");
            let mut client = Command::new(program);
            client
                .args(args)
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null());
            client
                .status()
                .expect("the client runs")
                .success()
                .then_some(())
        });
        server
    }

    /// Runs a script in one session and returns the printed lines.
    pub(crate) fn run(&self, script: &str) -> Vec<String> {
        let (program, args) = self.client.split_first().expect("a program");
        let mut client = Command::new(program);
        client.args(args).current_dir(self.home.path());
        lines_of(feed(client, script, &program.display().to_string()))
    }

    /// Opens a session for several scripts.
    pub(crate) fn session(&self) -> Session {
        let (program, args) = self.client.split_first().expect("a program");
        let mut client = Command::new(program);
        client
            .args(args)
            .current_dir(self.home.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut client = client.spawn().expect("the client runs");
        let answers = BufReader::new(client.stdout.take().expect("it is piped"));
        Session { client, answers }
    }
}

/// A PostgreSQL session that runs several scripts. Dropping this value ends the session, even in
/// the middle of a statement.
pub(crate) struct Session {
    client: Child,
    answers: BufReader<ChildStdout>,
}

impl Session {
    /// Runs a script and returns the printed lines.
    pub(crate) fn run(&mut self, script: &str) -> Vec<String> {
        let input = self.client.stdin.as_mut().expect("it is piped");
        input
            .write_all(format!("{script}\nSELECT 'done';\n").as_bytes())
            .expect("the session goes on");
        let answers = (&mut self.answers).lines().map(|line| line.expect("text"));
        let lines: Vec<_> = answers.take_while(|line| line != "done").collect();
        let ended = self.client.try_wait().expect("it is ours");
        assert!(
            ended.is_none(),
            "the session ended with {ended:?} at {script}"
        );
        lines
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let _ = self.client.kill();
        let _ = self.client.wait();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let pid = i32::try_from(self.process.id())
            .ok()
            .and_then(Pid::from_raw)
            .expect("a process has a number");
        let _ = kill_process(pid, self.end);
        let _ = self.process.wait();
    }
}

fn newest_postgresql() -> PathBuf {
    let versions = fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten();
    let newest = versions.max_by_key(|version| {
        version
            .file_name()
            .to_str()
            .and_then(|name| name.parse::<u32>().ok())
    });
    newest
        .expect("/usr/lib/postgresql is there: Debian package postgresql, installed by .ci/install-packages")
        .path()
        .join("bin")
}

/// Returns a command for `program`. If the test runs as root, the command runs as `user`, because
/// these servers refuse to run as root.
fn as_user(user: &str, program: &Path) -> Command {
    if !geteuid().is_root() {
        return Command::new(program);
    }
    let mut setpriv = Command::new("setpriv");
    setpriv
        .arg(format!("--reuid={user}"))
        .arg(format!("--regid={user}"))
        .args(["--clear-groups", "--"])
        .arg(program);
    // Use a working directory that every user may enter.
    setpriv.current_dir("/");
    setpriv
}

fn folder_of(user: &str) -> TempDir {
    let home = tempfile::tempdir().expect("a temporary folder");
    if geteuid().is_root() {
        let chown = Command::new("chown")
            .arg(user)
            .arg(home.path())
            .status()
            .expect("chown runs");
        assert!(
            chown.success(),
            "there is no user {user}: its Debian package is installed by .ci/install-packages"
        );
    }
    fs::set_permissions(home.path(), Permissions::from_mode(0o755)).expect("it is ours");
    home
}

fn feed(mut client: Command, script: &str, name: &str) -> Output {
    let spawned = client
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut client = spawned
        .unwrap_or_else(|error| panic!("{name} runs, installed by .ci/install-packages: {error}"));
    let mut input = client.stdin.take().expect("it is piped");
    std::thread::scope(|scope| {
        // Write the script on another thread, because the client prints output before it has read
        // the whole script. An error while writing is ignored, because a client that exits early
        // explains the error itself.
        scope.spawn(move || input.write_all(script.as_bytes()));
        assert_success(
            client.wait_with_output().expect("the client is waited for"),
            name,
        )
    })
}

fn assert_success(output: Output, name: &str) -> Output {
    assert!(
        output.status.success(),
        "{name}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    output
}

fn lines_of(output: Output) -> Vec<String> {
    String::from_utf8(output.stdout)
        .expect("text")
        .lines()
        .map(str::to_owned)
        .collect()
}
