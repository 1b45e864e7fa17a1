//! How large the processor's caches are, as far as the system tells.

use std::fs;
use std::path::Path;

/// Bytes of the second cache of the first processor, the last one that most processors have for themselves;
/// `None` where the system does not say.
pub fn second_level_bytes() -> Option<u64> {
    second_level(&caches_of(Path::new(FOLDER)))
}

/// Bytes of what a core of this machine has of caches of data: of the first level, of the second, and of what is
/// behind, its part where cores share one. None is smaller than the one before. `None` where the system does not say.
pub fn core_bytes() -> Option<[u64; 3]> {
    of_core(&caches_of(Path::new(FOLDER)))
}

/// The caches of the first processor.
const FOLDER: &str = "/sys/devices/system/cpu/cpu0/cache";

/// A cache that data is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cache {
    level: u32,
    bytes: u64,
    /// How many processors share it, of which a core may be more than one.
    processors: u64,
}

/// Each cache is a folder with a file for each thing that is said of it.
fn caches_of(folder: &Path) -> Vec<Cache> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| cache_of(&entry.path()))
        .collect()
}

fn cache_of(folder: &Path) -> Option<Cache> {
    let read = |name| {
        let text = fs::read_to_string(folder.join(name)).ok()?;
        Some(text.trim().to_owned())
    };
    let is_data = read("type").is_none_or(|of| of != "Instruction");
    is_data.then_some(())?;
    Some(Cache {
        level: read("level")?.parse().ok()?,
        bytes: bytes(&read("size")?)?,
        processors: read("shared_cpu_list")
            .and_then(|list| count(&list))
            .unwrap_or(1),
    })
}

fn second_level(caches: &[Cache]) -> Option<u64> {
    let second = caches.iter().find(|cache| cache.level == 2);
    second.map(|cache| cache.bytes)
}

fn of_core(caches: &[Cache]) -> Option<[u64; 3]> {
    let of_level = |level| caches.iter().find(|cache| cache.level == level);
    let (first, second) = (of_level(1)?, of_level(2)?);
    // The processors that share a first cache are one core.
    let part = |cache: &Cache| cache.bytes / (cache.processors / first.processors).max(1);
    let second = part(second).max(first.bytes);
    let behind = of_level(3).map_or(second, |third| part(third).max(second));
    Some([first.bytes, second, behind])
}

/// How many numbers a list such as `0-3,8` has.
fn count(list: &str) -> Option<u64> {
    let of_range = |range: &str| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last) = (first.parse::<u64>().ok()?, last.parse::<u64>().ok()?);
        last.checked_sub(first)?.checked_add(1)
    };
    let counts = list.split(',').map(of_range);
    let sum = counts.sum::<Option<u64>>()?;
    (sum > 0).then_some(sum)
}

/// A size such as `512K`.
fn bytes(text: &str) -> Option<u64> {
    let (number, unit) = match text.strip_suffix('K') {
        Some(number) => (number, 1 << 10),
        None => match text.strip_suffix('M') {
            Some(number) => (number, 1 << 20),
            None => (text, 1),
        },
    };
    number.parse::<u64>().ok()?.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caches_are_found() {
        let root = tempfile::tempdir().unwrap();
        for (name, level, of, size, shared) in [
            ("index0", "1", "Data", "32K", "0,2"),
            ("index1", "1", "Instruction", "64K", "0,2"),
            ("index2", "2", "Unified", "1M", "0,2"),
            ("index3", "3", "Unified", "32768K", "0-7"),
        ] {
            let folder = root.path().join(name);
            fs::create_dir(&folder).unwrap();
            for (file, text) in [
                ("level", level),
                ("type", of),
                ("size", size),
                ("shared_cpu_list", shared),
            ] {
                fs::write(folder.join(file), format!("{text}\n")).unwrap();
            }
        }
        fs::write(root.path().join("uevent"), "").unwrap();
        let found = || caches_of(root.path());
        assert_eq!(second_level(&found()), Some(1 << 20));
        // Four cores of two processors each share the last one.
        assert_eq!(of_core(&found()), Some([32 << 10, 1 << 20, 8 << 20]));
        fs::remove_file(root.path().join("index3/size")).unwrap();
        assert_eq!(of_core(&found()), Some([32 << 10, 1 << 20, 1 << 20]));
        fs::remove_file(root.path().join("index2/size")).unwrap();
        assert_eq!(second_level(&found()), None);
        assert_eq!(of_core(&found()), None);
    }

    #[test]
    fn a_part_is_no_smaller_than_the_cache_before() {
        let cache = |level, bytes, processors| Cache {
            level,
            bytes,
            processors,
        };
        let caches = [
            cache(1, 64 << 10, 1),
            cache(2, 1 << 20, 1),
            cache(3, 32 << 20, 64),
        ];
        assert_eq!(of_core(&caches), Some([64 << 10, 1 << 20, 1 << 20]));
        // A second cache that four cores share.
        let caches = [cache(1, 32 << 10, 1), cache(2, 2 << 20, 4)];
        assert_eq!(of_core(&caches), Some([32 << 10, 512 << 10, 512 << 10]));
    }

    #[test]
    fn lists_are_counted() {
        assert_eq!(count("0"), Some(1));
        assert_eq!(count("0-3,8"), Some(5));
        assert_eq!(count("3-0"), None);
        assert_eq!(count(""), None);
    }

    #[test]
    fn sizes_have_units() {
        assert_eq!(bytes("512K"), Some(512 << 10));
        assert_eq!(bytes("2M"), Some(2 << 20));
        assert_eq!(bytes("64"), Some(64));
        assert_eq!(bytes("large"), None);
        assert_eq!(bytes("18446744073709551615K"), None);
    }
}
