//! The extensions of the sitemap format: one file and one descriptor each.
//!
//! An extension is described in its descriptor only. From it come the mapping and the rendering of a
//! build, the content model of `verify`, the columns of `read`, and the options and warnings in
//! Python. To add one: write its file, declare the module and list it in [`ALL`].
//!
//! Images and alternates have hand-written mapping, rendering and columns, since they are part of the
//! fast path; they take names, namespaces, limits, findings, options and warnings from here.

pub mod alternate;
pub mod descriptor;
pub mod image;
pub mod news;
#[cfg(feature = "pagemap")]
pub mod pagemap;
pub mod record;
pub mod video;

use crate::sitemap::element::{Element, Role};
use crate::sitemap::extension::descriptor::Extension;

/// All extensions, in the order of their elements in a `url` and of their declarations in a header.
pub static ALL: &[&Extension] = &[
    &image::EXTENSION,
    &alternate::EXTENSION,
    &video::EXTENSION,
    &news::EXTENSION,
    #[cfg(feature = "pagemap")]
    &pagemap::EXTENSION,
];

/// The extension of this name.
pub fn named(name: &str) -> Option<(usize, &'static Extension)> {
    ALL.iter().copied().enumerate().find(|(_, extension)| extension.name == name)
}

/// The extension of which this is the element in a `url`, by its place in [`ALL`].
pub fn of_root(element: &Element) -> Option<usize> {
    match element.role {
        Role::Block | Role::Link => {
            ALL.iter().position(|extension| std::ptr::eq(&extension.root, element))
        }
        _ => None,
    }
}
