//! The header and the footer of a shard: the declaration, the root and its namespaces.

use crate::sitemap::extension;

/// The namespace of sitemaps.
pub const SITEMAP: &str = "http://www.sitemaps.org/schemas/sitemap/0.9";

const OPEN: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
                    <urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\"";

/// The bytes after the last element.
pub const FOOTER: &str = "</urlset>\n";

/// The place of images in [`extension::ALL`].
pub const IMAGES: usize = place("image");
/// The place of alternates.
pub const ALTERNATES: usize = place("alternate");
/// The place of news.
pub const ARTICLES: usize = place("news");

/// The bit of images in [`crate::flow::entry::Entry::namespaces`].
pub const IMAGE: u8 = bit(IMAGES);
/// The bit of alternates.
pub const XHTML: u8 = bit(ALTERNATES);
/// The bit of news.
pub const NEWS: u8 = bit(ARTICLES);

/// All of them.
pub const ALL: u8 = bit(extension::ALL.len()) - 1;

/// The bit of an extension, by its place in [`extension::ALL`].
pub const fn bit(extension: usize) -> u8 {
    1 << extension
}

const fn place(name: &str) -> usize {
    let name = name.as_bytes();
    let mut place = 0;
    loop {
        let other = extension::ALL[place].name.as_bytes();
        let mut same = 0;
        while same < name.len() && same < other.len() && name[same] == other[same] {
            same += 1;
        }
        if same == name.len() && same == other.len() {
            return place;
        }
        place += 1;
    }
}

/// The bytes before the first element of a shard that uses these namespaces.
pub fn header(namespaces: u8) -> String {
    let mut header = OPEN.to_owned();
    for (place, extension) in extension::ALL.iter().enumerate() {
        if namespaces & bit(place) != 0 {
            header.push_str(&format!(" xmlns:{}=\"{}\"", extension.prefix, extension.uri));
        }
    }
    header.push_str(">\n");
    header
}

/// Bytes of header and footer.
#[inline]
pub fn length(namespaces: u8) -> u64 {
    LENGTHS[usize::from(namespaces & ALL)]
}

/// Bytes of header and footer for each combination of namespaces, since each element needs it.
const LENGTHS: [u64; ALL as usize + 1] = {
    let mut lengths = [(OPEN.len() + ">\n".len() + FOOTER.len()) as u64; ALL as usize + 1];
    let mut mix = 0;
    while mix < lengths.len() {
        let mut place = 0;
        while place < extension::ALL.len() {
            if mix & bit(place) as usize != 0 {
                let extension = extension::ALL[place];
                let text = " xmlns:=\"\"".len() + extension.prefix.len() + extension.uri.len();
                lengths[mix] += text as u64;
            }
            place += 1;
        }
        mix += 1;
    }
    lengths
};

#[cfg(test)]
mod tests {
    #[test]
    fn the_length_is_that_of_the_text() {
        for namespaces in 0..=super::ALL {
            let text = super::header(namespaces) + super::FOOTER;
            assert_eq!(super::length(namespaces), text.len() as u64);
        }
    }
}
