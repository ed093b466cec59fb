//! Values of a column and hosts as parts of file names.

use std::collections::HashSet;

/// Characters of a name at most: with the rest it stays far below the 255 bytes of file systems.
const MOST: usize = 80;

/// Gives each value a name of its own.
#[derive(Default)]
pub(super) struct Names {
    /// in lower case: some file systems do not tell `A` from `a`
    taken: HashSet<String>,
}

impl Names {
    /// The name of a value: itself if it is safe, else its letters, digits and hyphens and 8
    /// hexadecimal digits of its BLAKE3. The name depends on the value alone, but where two differ
    /// in nothing but the case of letters: there the second gets the digits.
    pub fn of(&mut self, value: &[u8], dots: bool) -> String {
        let safe = |byte: &u8| {
            byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_') || dots && *byte == b'.'
        };
        let text = String::from_utf8_lossy(value);
        let plain = !value.is_empty()
            && value.len() <= MOST
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
        // a value may look like the name of another
        let mut more = value.to_vec();
        while !self.taken.insert(name.to_ascii_lowercase()) {
            name = digested(&more);
            more.push(b'+');
        }
        name
    }
}

/// Names of shards end in five digits or more, those of further indexes in `index-N`: a value must
/// not end so.
fn reads_as_number(text: &str) -> bool {
    let (before, last) = text.rsplit_once('-').unwrap_or(("", text));
    let digits = last.bytes().all(|byte| byte.is_ascii_digit());
    digits && (last.len() >= 5 || before == "index" || before.ends_with("-index"))
}

fn digested(value: &[u8]) -> String {
    let mut name = String::new();
    for &byte in value {
        if name.len() == MOST / 2 {
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
    // the letter keeps eight digits from being read as the number of a shard
    format!("{stem}{}x{}", if stem.is_empty() { "" } else { "-" }, &digest[..8])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        let mut names = Names::default();
        let mut name = |value: &str| names.of(value.as_bytes(), false);
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
        assert!(name(&"long".repeat(1_000)).len() < MOST);
        assert_eq!(name("2024"), "2024");
        let mut hosts = Names::default();
        assert_eq!(hosts.of(b"www.shop.example", true), "www.shop.example");
        for host in ["..", ".urlset", "a..b", "[::1]", "a:8080", "a."] {
            assert!(hosts.of(host.as_bytes(), true).contains('x'), "{host}");
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
                .map(|value| Names::default().of(value.as_bytes(), round == 1).to_uppercase())
                .collect();
            values.extend(more);
        }
        values.sort();
        values.dedup();
        for value in values {
            assert!(seen.insert(names.of(value.as_bytes(), false).to_lowercase()), "{value}");
        }
    }
}
