//! How much memory this process may still take: what the machine has free, and what is left of the
//! limits of its control groups and of its own.

use std::fs;
use std::path::{Path, PathBuf};

/// Bytes that are free for this process; `None` where the system does not say.
pub fn free_bytes() -> Option<u64> {
    [of_machine(), of_groups(), of_process()]
        .into_iter()
        .flatten()
        .min()
}

/// What can be had without swapping.
fn of_machine() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    kibibytes(&text, "MemAvailable:")
}

/// A line such as `MemAvailable:   19212 kB`.
fn kibibytes(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let number = line.split_whitespace().next()?.parse::<u64>().ok()?;
    number.checked_mul(1024)
}

/// Of the control groups that it is in, of both versions, and all that they are in.
fn of_groups() -> Option<u64> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let of_line = |line: &str| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, path) = (parts.next()?, parts.next()?);
        match controllers {
            "" => of_group("/sys/fs/cgroup", path, "memory.max", "memory.current"),
            _ if controllers.split(',').any(|name| name == "memory") => of_group(
                "/sys/fs/cgroup/memory",
                path,
                "memory.limit_in_bytes",
                "memory.usage_in_bytes",
            ),
            _ => None,
        }
    };
    groups.lines().filter_map(of_line).min()
}

/// What is left of the tightest limit on the way up.
fn of_group(root: &str, path: &str, limit: &str, usage: &str) -> Option<u64> {
    let mut folder = PathBuf::from(root);
    folder.extend(
        path.split('/')
            .filter(|part| !part.is_empty() && *part != ".."),
    );
    let root = Path::new(root);
    let left = |folder: &Path| {
        let number = |name| {
            fs::read_to_string(folder.join(name))
                .ok()?
                .trim()
                .parse::<u64>()
                .ok()
        };
        Some(number(limit)?.saturating_sub(number(usage).unwrap_or(0)))
    };
    let folders = folder
        .ancestors()
        .take_while(|folder| folder.starts_with(root));
    folders.filter_map(left).min()
}

/// What is left of the address space that it may have.
fn of_process() -> Option<u64> {
    let mut limit = libc::rlimit {
        rlim_cur: libc::RLIM_INFINITY,
        rlim_max: libc::RLIM_INFINITY,
    };
    // SAFETY: it fills what it is given.
    let known = unsafe { libc::getrlimit(libc::RLIMIT_AS, &mut limit) } == 0;
    let limit = (known && limit.rlim_cur != libc::RLIM_INFINITY).then_some(limit.rlim_cur)?;
    let status = fs::read_to_string("/proc/self/status").ok()?;
    Some(limit.saturating_sub(kibibytes(&status, "VmSize:")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_of_groups_are_found_on_the_way_up() {
        let root = tempfile::tempdir().unwrap();
        let inner = root.path().join("a/b");
        fs::create_dir_all(&inner).unwrap();
        fs::write(root.path().join("a/memory.max"), "1000\n").unwrap();
        fs::write(root.path().join("a/memory.current"), "300\n").unwrap();
        fs::write(inner.join("memory.max"), "max\n").unwrap();
        let of = |path| {
            of_group(
                root.path().to_str().unwrap(),
                path,
                "memory.max",
                "memory.current",
            )
        };
        assert_eq!(of("/a/b"), Some(700));
        assert_eq!(of("/"), None);
    }

    #[test]
    fn the_machine_tells() {
        assert_eq!(
            kibibytes("A: 1 kB\nVmSize:\t  12 kB\n", "VmSize:"),
            Some(12 << 10)
        );
        if cfg!(target_os = "linux") {
            assert!(free_bytes().is_some_and(|bytes| bytes > 1 << 20));
        }
    }
}
