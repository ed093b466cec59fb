//! What stands around the `<url>` elements of a shard.

const OPEN: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
                    <urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\"";

/// What stands after the last element.
pub const FOOTER: &str = "</urlset>\n";

/// The bit of images in [`crate::flow::entry::Entry::namespaces`].
pub const IMAGE: u8 = 1;
/// The bit of alternates.
pub const XHTML: u8 = 2;
/// The bit of videos.
pub const VIDEO: u8 = 4;
/// The bit of news.
pub const NEWS: u8 = 8;

/// All of them.
pub const ALL: u8 = IMAGE | XHTML | VIDEO | NEWS;

/// The extensions: the bit in [`crate::flow::entry::Entry::namespaces`], and the declaration
/// (PROTOCOL section 2).
pub const NAMESPACES: [(u8, &str); 4] = [
    (IMAGE, " xmlns:image=\"http://www.google.com/schemas/sitemap-image/1.1\""),
    (XHTML, " xmlns:xhtml=\"http://www.w3.org/1999/xhtml\""),
    (VIDEO, " xmlns:video=\"http://www.google.com/schemas/sitemap-video/1.1\""),
    (NEWS, " xmlns:news=\"http://www.google.com/schemas/sitemap-news/0.9\""),
];

/// What stands before the first element of a shard that uses these namespaces.
pub fn header(namespaces: u8) -> String {
    let mut header = OPEN.to_owned();
    for (bit, declaration) in NAMESPACES {
        if namespaces & bit != 0 {
            header.push_str(declaration);
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

/// Bytes of header and footer for each mix of namespaces: asked for with every element.
const LENGTHS: [u64; ALL as usize + 1] = {
    let mut lengths = [(OPEN.len() + ">\n".len() + FOOTER.len()) as u64; ALL as usize + 1];
    let mut mix = 0;
    while mix < lengths.len() {
        let mut i = 0;
        while i < NAMESPACES.len() {
            if mix & NAMESPACES[i].0 as usize != 0 {
                lengths[mix] += NAMESPACES[i].1.len() as u64;
            }
            i += 1;
        }
        mix += 1;
    }
    lengths
};

#[cfg(test)]
mod tests {
    #[test]
    fn the_length_is_that_of_the_text() {
        for namespaces in 0..16 {
            let text = super::header(namespaces) + super::FOOTER;
            assert_eq!(super::length(namespaces), text.len() as u64);
        }
    }
}
