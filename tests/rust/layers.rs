//! Imports point one way: a file of the core uses the layers below it and no other, and no files
//! import each other in a circle.
//!
//! The test reads the sources: every path that begins with `crate::`, `self::` or `super::`, in a
//! `use` line or in the code. It leaves out comments and the code of tests.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// Each layer, and the layers that it may use. A module belongs to the longest name that it begins
/// with; the root has only the constants of `lib.rs`.
const ALLOWED: [(&str, &[&str]); 17] = [
    ("error", &["file"]),
    ("file", &[]),
    ("panic", &[]),
    ("simd", &["root"]),
    ("thread", &["error", "panic"]),
    ("config", &["error", "sitemap"]),
    ("sitemap", &["error", "simd", "root"]),
    ("flow", &["error", "file", "simd", "sitemap", "root"]),
    ("build::read", STAGE),
    ("build::render", STAGE),
    ("build::duplicates", STAGE),
    ("build::stamps", STAGE),
    ("build::shard", STAGE),
    ("build::write", STAGE),
    (
        "build::pipeline",
        &[
            "build::duplicates",
            "build::stamps",
            "build::read",
            "build::render",
            "build::shard",
            "build::write",
            "config",
            "error",
            "file",
            "flow",
            "panic",
            "root",
            "simd",
            "sitemap",
            "thread",
        ],
    ),
    ("inspect", STAGE),
    ("root", &["error"]),
];

/// A stage knows no other stage.
const STAGE: &[&str] =
    &["config", "error", "file", "flow", "panic", "root", "simd", "sitemap", "thread"];

/// The sources by module: `build::read::csv` and its text.
type Sources = BTreeMap<String, String>;

fn sources(folder: &Path, module: &str, found: &mut Sources) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let stem = path.file_stem().unwrap().to_str().unwrap();
        let inner = match stem {
            "lib" if module.is_empty() => "root".to_owned(),
            "mod" => module.to_owned(),
            _ if module.is_empty() => stem.to_owned(),
            _ => format!("{module}::{stem}"),
        };
        if path.is_dir() {
            sources(&path, &inner, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") && stem != "tests" {
            found.insert(inner, code(&fs::read_to_string(&path).unwrap()));
        }
    }
}

/// The text without comments and without the module of tests at its end.
fn code(text: &str) -> String {
    let text = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
    let bare = |line: &str| match line.find("//") {
        // a URL in a string is not a comment
        Some(at) if !line[..at].ends_with(':') => line[..at].to_owned(),
        _ => line.to_owned(),
    };
    text.lines().map(bare).collect::<Vec<_>>().join("\n")
}

/// The paths that begin at `text`, which follows `crate::`: `a::{b, c::d}` is `a::b` and `a::c::d`.
/// Returns their length in the text.
fn tree(text: &str, before: &str, paths: &mut Vec<String>) -> usize {
    let mut path = before.to_owned();
    let mut at = 0;
    loop {
        at += text[at..].len() - text[at..].trim_start().len();
        let rest = &text[at..];
        if rest.starts_with('{') {
            at += 1;
            while !text[at..].trim_start().starts_with('}') {
                at += tree(&text[at..], &path, paths);
                let skipped = text[at..].trim_start();
                at = text.len() - skipped.len();
                at += usize::from(skipped.starts_with(','));
            }
            return text.len() - text[at..].trim_start().len() + 1;
        }
        let name = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        at += name.max(usize::from(rest.starts_with('*')));
        if name > 0 && &rest[..name] != "self" {
            path = format!("{path}::{}", &rest[..name]);
        }
        if !text[at..].starts_with("::") {
            paths.push(path.trim_start_matches("::").to_owned());
            let alias = text[at..].trim_start();
            if let Some(alias) = alias.strip_prefix("as ") {
                let end = alias.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(0);
                at = text.len() - alias.len() + end;
            }
            return at;
        }
        at += 2;
    }
}

/// The modules that a module imports.
fn imports(module: &str, sources: &Sources) -> BTreeSet<String> {
    let text = &sources[module];
    let parent = module.rsplit_once("::").map_or("", |(parent, _)| parent);
    let mut paths = Vec::new();
    for (start, base) in [("crate::", ""), ("self::", module), ("super::", parent)] {
        for (at, _) in text.match_indices(start) {
            let joined = text[..at].chars().next_back();
            if joined.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == ':') {
                continue;
            }
            tree(&text[at + start.len()..], base, &mut paths);
        }
    }
    let owner = |path: &String| {
        let mut path = path.as_str();
        loop {
            if sources.contains_key(path) {
                return path.to_owned();
            }
            match path.rsplit_once("::") {
                Some((before, _)) => path = before,
                None => return "root".to_owned(),
            }
        }
    };
    paths.iter().map(owner).filter(|found| found != module).collect()
}

fn layer(module: &str) -> &'static str {
    let within = |layer: &str| module == layer || module.starts_with(&format!("{layer}::"));
    let layers = ALLOWED.iter().map(|(layer, _)| *layer).filter(|layer| within(layer));
    layers.max_by_key(|layer| layer.len()).unwrap_or("")
}

/// Imports that point to a layer that may not be used.
fn wrong_imports(sources: &Sources) -> Vec<String> {
    let mut wrong = Vec::new();
    for module in sources.keys().filter(|module| *module != "build") {
        let own = layer(module);
        let Some((_, allowed)) = ALLOWED.iter().find(|(layer, _)| *layer == own) else {
            wrong.push(format!("{module} belongs to no layer"));
            continue;
        };
        for import in imports(module, sources) {
            let other = layer(&import);
            if other != own && !allowed.contains(&other) {
                wrong.push(format!("{module} uses {import}"));
            }
        }
    }
    wrong
}

/// Modules that use each other, directly or through others.
fn circles(sources: &Sources) -> BTreeSet<String> {
    let graph: BTreeMap<&String, BTreeSet<String>> =
        sources.keys().map(|module| (module, imports(module, sources))).collect();
    let reaches_itself = |start: &&String| {
        let (mut seen, mut open) = (BTreeSet::new(), vec![*start]);
        while let Some(module) = open.pop() {
            for next in graph.get(module).into_iter().flatten() {
                if next == *start {
                    return true;
                }
                if seen.insert(next) {
                    open.push(next);
                }
            }
        }
        false
    };
    sources.keys().filter(reaches_itself).cloned().collect()
}

fn core() -> Sources {
    let mut found = Sources::new();
    sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("rust/core"), "", &mut found);
    assert!(found.len() > 80, "{} files", found.len());
    found
}

#[test]
fn imports_point_one_way() {
    let wrong = wrong_imports(&core());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn no_files_import_each_other_in_a_circle() {
    let found = circles(&core());
    assert!(found.is_empty(), "{found:?}");
}

/// The two tests above fail for a wrong import in any form of Rust.
#[test]
fn a_planted_import_is_found() {
    for (module, line) in [
        ("build::render::loc", "use crate::build::shard::packer::Packer;"),
        ("build::render::loc", "use crate::build::{shard::{self, packer as p}, read::*};"),
        ("flow::chunk", "fn f() -> crate::build::read::csv::Csv { loop {} }"),
        ("sitemap::date", "use crate::flow::chunk::Chunk;"),
        ("inspect::verify", "use crate::build::write::folder::Folder;"),
        ("build::write::folder", "use super::super::inspect::verify;\nuse crate::inspect;"),
        ("error", "use crate::flow::outcome::Outcome;"),
    ] {
        let mut sources = core();
        let before = wrong_imports(&sources);
        sources.get_mut(module).unwrap().push_str(&format!("\n{line}\n"));
        let found = wrong_imports(&sources);
        assert!(found.len() > before.len(), "{line} in {module}");
    }
    for (module, line) in [
        ("build::read::scan", "use crate::build::read::csv::Csv;"),
        ("build::read::scan", "use super::csv::{self};"),
        ("flow::spill", "use crate::flow::{chunk as c, shard::Shard, outcome};"),
    ] {
        let mut sources = core();
        let before = circles(&sources);
        sources.get_mut(module).unwrap().push_str(&format!("\n{line}\n"));
        assert!(circles(&sources).len() > before.len(), "{line} in {module}");
    }
}
