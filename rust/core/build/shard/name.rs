//! Values of a column and hosts as parts of file names.

use std::collections::HashSet;

/// Limit of the characters of a name. With the rest it stays far below the 255 bytes of file systems.
const MAX_NAME: usize = 80;

/// Assigns a unique name to each value.
#[derive(Default)]
pub(crate) struct Names {
    /// in lower case: some file systems do not distinguish `A` and `a`
    taken: HashSet<String>,
}

impl Names {
    /// Names for a job that has files whose names begin with `taken`.
    pub fn new(taken: &[String]) -> Names {
        Names { taken: taken.iter().map(|stem| stem.to_ascii_lowercase()).collect() }
    }

    /// The first part of the names of a value's files, which `stem` derives from the name of the value.
    ///
    /// The name is the value itself if it is safe. Otherwise it has the letters, digits and hyphens of
    /// the value and 8 hexadecimal digits of its BLAKE3. It depends on the value alone, except where
    /// two files of the job would have the same name, or names that differ only in case: then the
    /// second value gets the digits.
    pub fn of(&mut self, value: &[u8], dots: bool, stem: impl Fn(&str) -> String) -> String {
        let safe = |byte: &u8| {
            byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_') || dots && *byte == b'.'
        };
        let text = String::from_utf8_lossy(value);
        let plain = !value.is_empty()
            && value.len() <= MAX_NAME
            && value.iter().all(safe)
            && value[0].is_ascii_alphanumeric()
            && !text.contains("..")
            && !text.ends_with('.')
            && !reads_as_number(&text);
        let mut name = if value.is_empty() {
            "none".to_owned()
        } else if plain {
            text.into_owned()
        } else {
            digested(value)
        };
        // a value may equal the name of another value
        let mut more = value.to_vec();
        loop {
            let stem = stem(&name);
            if self.take(&stem.to_ascii_lowercase()) {
                return stem;
            }
            name = digested(&more);
            more.push(b'+');
        }
    }

    /// Takes a stem, in lower case, if no file of another stem can have the name of one of its files.
    fn take(&mut self, stem: &str) -> bool {
        let owner = owner(stem);
        if self.taken.contains(stem) || owner.is_some_and(|owner| self.taken.contains(owner)) {
            return false;
        }
        self.taken.extend(owner.map(str::to_owned));
        self.taken.insert(stem.to_owned())
    }
}

/// The stem that has a shard or a further index with the name of the first index of `stem`: `a` for
/// `a-00001`, `a-index-2` and `a-HASH-DIGEST`.
fn owner(stem: &str) -> Option<&str> {
    let (before, last) = stem.rsplit_once('-')?;
    let digits = last.bytes().all(|byte| byte.is_ascii_digit());
    if digits && let Some(owner) = before.strip_suffix("-index") {
        return Some(owner);
    }
    if digits && last.len() >= 5 {
        return Some(before);
    }
    let hash = |text: &str| text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let (owner, boundary) = before.rsplit_once('-')?;
    (hash(last) && hash(boundary)).then_some(owner)
}

/// Names of shards end in five digits or more, those of further indexes in `index-N`. A value must not
/// end in these.
fn reads_as_number(text: &str) -> bool {
    let (before, last) = text.rsplit_once('-').unwrap_or(("", text));
    let digits = last.bytes().all(|byte| byte.is_ascii_digit());
    digits && (last.len() >= 5 || before == "index" || before.ends_with("-index"))
}

fn digested(value: &[u8]) -> String {
    let mut name = String::new();
    for &byte in value {
        if name.len() == MAX_NAME / 2 {
            break;
        }
        if byte.is_ascii_alphanumeric() {
            name.push(byte.to_ascii_lowercase().into());
        } else if !name.is_empty() && !name.ends_with('-') {
            name.push('-');
        }
    }
    let digest = blake3::hash(value).to_hex();
    let stem = name.trim_end_matches('-');
    // without the letter, eight digits could be the number of a shard
    format!("{stem}{}x{}", if stem.is_empty() { "" } else { "-" }, &digest[..8])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn names() {
        let mut names = Names::default();
        let mut name = |value: &str| names.of(value.as_bytes(), false, str::to_owned);
        assert_eq!(name("shoes"), "shoes");
        assert_eq!(name("Men_s-2"), "Men_s-2");
        assert_eq!(name(""), "none");
        assert!(name("Shoes").starts_with("shoes-x"));
        assert!(name("none").starts_with("none-x"));
        for value in [
            "../../etc/passwd",
            "/",
            ".",
            "..",
            "a/b",
            "a\\b",
            "-rf",
            "ü",
            "a b",
            "a\0b",
            ".urlset",
            "x-00001",
            "123456",
            "index-2",
            "a-index-2",
            "2-index-33",
            "CON:",
            "con?",
            "\u{202e}",
        ] {
            let name = name(value);
            assert!(name.contains('x'), "{value:?}: {name}");
            assert!(
                name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b)),
                "{name}"
            );
            assert!(!reads_as_number(&name) && !name.starts_with('-'));
        }
        assert!(name(&"long".repeat(1_000)).len() < MAX_NAME);
        assert_eq!(name("2024"), "2024");
        let mut hosts = Names::default();
        assert_eq!(hosts.of(b"www.shop.example", true, str::to_owned), "www.shop.example");
        for host in ["..", ".urlset", "a..b", "[::1]", "a:8080", "a."] {
            assert!(hosts.of(host.as_bytes(), true, str::to_owned).contains('x'), "{host}");
        }
    }

    #[test]
    fn no_two_values_have_one_name() {
        let mut names = Names::default();
        let mut seen = HashSet::new();
        let mut values: Vec<String> =
            ["A", "a", "ä", "Ä", "A ", "a-", "a_", "none", "", "None"].map(str::to_owned).to_vec();
        for round in 0..3 {
            let more: Vec<String> = (values.iter())
                .map(|value| Names::default().of(value.as_bytes(), round == 1, str::to_owned))
                .map(|name| name.to_uppercase())
                .collect();
            values.extend(more);
        }
        values.sort();
        values.dedup();
        for value in values {
            let name = names.of(value.as_bytes(), false, str::to_owned);
            assert!(seen.insert(name.to_lowercase()), "{value}");
        }
    }

    /// The files that a stem may have: indexes, plain shards of both layouts.
    fn files(stem: &str) -> Vec<String> {
        let mut files = vec![format!("{stem}.xml")];
        files.extend((2..40).map(|number| format!("{stem}-index-{number}.xml")));
        files.extend((1..40).map(|number| format!("{stem}-{number:05}.xml")));
        files.extend((1..40).map(|number| format!("{stem}-{number:016x}-{:016x}.xml", 7)));
        files.iter().map(|name| name.to_lowercase()).collect()
    }

    #[test]
    fn no_file_has_the_name_of_another_sets() {
        let (boundary, digest) = (format!("{:016x}", 3), format!("{:016X}", 7));
        let parts = ["a", "B", "b", "2", "index", "00001", "x", &boundary, &digest];
        let mut random = Random::new(3);
        let mut random = |limit: usize| random.below(limit as u64) as usize;
        for _ in 0..500 {
            let mut join = |limit: usize| {
                let count = 1 + random(limit);
                (0..count).map(|_| parts[random(parts.len())]).collect::<Vec<_>>().join("-")
            };
            // a set that is not split and has no own index, then two sets that are split
            let mut taken = vec![join(3).to_lowercase()];
            let shards = files(&taken[0]).split_off(39);
            let mut all: HashSet<String> = shards.into_iter().collect();
            for set in [join(3), join(3)] {
                let mut names = Names::new(&taken);
                let mut made = HashSet::new();
                for _ in 0..6 {
                    let value = join(4);
                    if made.insert(value.clone()) {
                        let stem =
                            names.of(value.as_bytes(), false, |name| format!("{set}-{name}"));
                        taken.extend(owner(&stem.to_lowercase()).map(str::to_owned));
                        for file in files(&stem) {
                            assert!(all.insert(file.clone()), "{file}: {taken:?}, {stem}");
                        }
                        taken.push(stem);
                    }
                }
            }
        }
    }
}
