//! How large the processor's caches are, as far as the system tells.

use std::fs;
use std::path::Path;

/// Bytes of the second cache of the first processor, the last one that most processors have for themselves;
/// `None` where the system does not say.
pub fn second_level_bytes() -> Option<u64> {
    of_folder(Path::new("/sys/devices/system/cpu/cpu0/cache"))
}

/// Each cache is a folder with the files `level` and `size`.
fn of_folder(folder: &Path) -> Option<u64> {
    let caches = fs::read_dir(folder).ok()?;
    let mut sizes = caches.filter_map(|cache| {
        let path = cache.ok()?.path();
        let read = |name| fs::read_to_string(path.join(name)).ok();
        (read("level")?.trim() == "2").then_some(())?;
        bytes(read("size")?.trim())
    });
    sizes.next()
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
    fn the_second_cache_is_found() {
        let root = tempfile::tempdir().unwrap();
        for (level, size) in [("1\n", "32K\n"), ("3\n", "32768K\n"), ("2\n", "1M\n")] {
            let folder = root.path().join(format!("index{}", level.trim()));
            fs::create_dir(&folder).unwrap();
            fs::write(folder.join("level"), level).unwrap();
            fs::write(folder.join("size"), size).unwrap();
        }
        fs::write(root.path().join("uevent"), "").unwrap();
        assert_eq!(of_folder(root.path()), Some(1 << 20));
        fs::remove_file(root.path().join("index2/size")).unwrap();
        assert_eq!(of_folder(root.path()), None);
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
