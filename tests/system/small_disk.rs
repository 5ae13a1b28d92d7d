//! A disk of a few MiB that only chosen processes can see. Mounting it requires root.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use idmint_testing::service::{Home, run_by};

/// A small disk. It is unmounted when this value is dropped.
pub(crate) struct SmallDisk {
    /// The process that owns the private mount. The mount exists as long as this process runs.
    holder: Child,
    path: PathBuf,
    _home: Home,
}

impl SmallDisk {
    pub(crate) fn empty(mib: u32) -> SmallDisk {
        SmallDisk::mount(&format!(r#"mount -t tmpfs -o size={mib}m tmpfs "$0""#))
    }

    pub(crate) fn read_only() -> SmallDisk {
        SmallDisk::mount(r#"mount --bind "$0" "$0" && mount -o remount,ro,bind "$0""#)
    }

    fn mount(mount: &str) -> SmallDisk {
        let home = Home::new();
        let path = home.path("disk");
        fs::create_dir(&path).unwrap();
        let mut holder = Command::new("unshare")
            .args([
                "--mount",
                "sh",
                "-c",
                &format!("{mount} && echo mounted && exec sleep 600"),
            ])
            .arg(&path)
            .stdout(Stdio::piped())
            .spawn()
            .expect("unshare runs: it is part of util-linux");
        let mut said = String::new();
        BufReader::new(holder.stdout.take().unwrap())
            .read_line(&mut said)
            .unwrap();
        assert_eq!(
            said, "mounted\n",
            "mounting needs root, or CAP_SYS_ADMIN in a container"
        );
        SmallDisk {
            holder,
            path,
            _home: home,
        }
    }

    /// Returns the path of the disk, which is valid only for processes that can see the disk.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the command so that it runs in the mount namespace of the disk, and can see the
    /// disk.
    pub(crate) fn beside(&self, command: &Command) -> Command {
        let mut nsenter = Command::new("nsenter");
        nsenter
            .arg(format!("--mount=/proc/{}/ns/mnt", self.holder.id()))
            .arg("--");
        run_by(nsenter, command)
    }

    /// Writes a file until the disk has no room for another byte.
    pub(crate) fn fill(&self) {
        let mut file = File::create(self.ballast()).unwrap();
        let full = (0..20_000)
            .find_map(|_| file.write_all(&[0; 1024]).err())
            .expect("the disk is small");
        assert_eq!(full.kind(), ErrorKind::StorageFull);
    }

    /// Removes the file that fills the disk.
    pub(crate) fn free(&self) {
        fs::remove_file(self.ballast()).unwrap();
    }

    fn ballast(&self) -> PathBuf {
        let seen_from_here = Path::new("/proc")
            .join(self.holder.id().to_string())
            .join("root");
        seen_from_here
            .join(self.path.strip_prefix("/").unwrap())
            .join("ballast")
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}
