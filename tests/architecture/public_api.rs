//! Compares the public names of the published crates with the list in `public-api.txt`.
//!
//! `UPDATE_DOCS=1 cargo test --test architecture` writes the list again. Review its diff, because a
//! removed name breaks callers.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use syn::parse::ParseStream;
use syn::{Ident, Item, ItemEnum, Token, UseTree, Visibility};

use crate::{read, root, rust_files};

const SNAPSHOT: &str = "tests/architecture/public-api.txt";

/// The published crates, each with the folder of its source code.
const PUBLISHED: [(&str, &str); 3] = [
    ("idmint", "src"),
    ("idmint-client", "crates/idmint-client/src"),
    ("idmint-core", "crates/idmint-core/src"),
];

/// Returns every public path of a crate: the items that its modules define or export, and the
/// methods of public types.
fn public_names(source: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let mut modules = vec![(String::new(), format!("{source}/lib.rs"))];
    while let Some((prefix, path)) = modules.pop() {
        let file = syn::parse_file(&read(&path)).unwrap_or_else(|error| panic!("{path}: {error}"));
        for item in &file.items {
            if is_hidden(item) {
                continue;
            }
            match item {
                Item::Mod(module) if is_public(&module.vis) => {
                    let name = module.ident.to_string();
                    names.insert(format!("{prefix}{name}"));
                    match &module.content {
                        Some((_, items)) => {
                            for item in items {
                                exported(item, &format!("{prefix}{name}::"), &mut names);
                            }
                        }
                        None => modules.push((format!("{prefix}{name}::"), file_of(&path, &name))),
                    }
                }
                item => exported(item, &prefix, &mut names),
            }
        }
    }
    let methods = methods(source);
    let of_types: Vec<String> = names
        .iter()
        .filter_map(|name| {
            let own = name.rsplit("::").next()?;
            Some(
                methods
                    .get(own)?
                    .iter()
                    .map(move |method| format!("{name}::{method}")),
            )
        })
        .flatten()
        .collect();
    names.extend(of_types);
    names
}

/// Returns the file of the module `name`, which the file `parent` declares.
fn file_of(parent: &str, name: &str) -> String {
    let (folder, file) = parent.rsplit_once('/').unwrap();
    let folder = match file {
        "lib.rs" | "mod.rs" => folder.to_owned(),
        other => format!("{folder}/{}", other.trim_end_matches(".rs")),
    };
    let own = format!("{folder}/{name}.rs");
    if root().join(&own).exists() {
        own
    } else {
        format!("{folder}/{name}/mod.rs")
    }
}

fn exported(item: &Item, prefix: &str, names: &mut BTreeSet<String>) {
    let (visibility, name) = match item {
        Item::Use(item) if is_public(&item.vis) => {
            used(&item.tree, &mut |name| {
                names.insert(format!("{prefix}{name}"));
            });
            return;
        }
        Item::Const(item) => (&item.vis, item.ident.to_string()),
        Item::Enum(item) => (&item.vis, item.ident.to_string()),
        Item::Fn(item) => (&item.vis, item.sig.ident.to_string()),
        Item::Struct(item) => (&item.vis, item.ident.to_string()),
        Item::Trait(item) => (&item.vis, item.ident.to_string()),
        Item::Type(item) => (&item.vis, item.ident.to_string()),
        _ => return,
    };
    if is_public(visibility) {
        names.insert(format!("{prefix}{name}"));
    }
}

fn used(tree: &UseTree, tell: &mut impl FnMut(String)) {
    match tree {
        UseTree::Path(path) => used(&path.tree, tell),
        UseTree::Name(name) => tell(name.ident.to_string()),
        UseTree::Rename(rename) => tell(rename.rename.to_string()),
        UseTree::Glob(_) => panic!("a public glob hides what is exported"),
        UseTree::Group(group) => group.items.iter().for_each(|item| used(item, tell)),
    }
}

/// Returns the names of the public inherent functions for each type of a crate.
fn methods(source: &str) -> BTreeMap<String, BTreeSet<String>> {
    let mut methods: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for path in rust_files(&[source]) {
        let file = syn::parse_file(&read(&path)).unwrap_or_else(|error| panic!("{path}: {error}"));
        for item in file.items {
            if let Item::Macro(item) = &item
                && item.mac.path.is_ident("named")
            {
                let (method, name) = item.mac.parse_body_with(named).unwrap();
                methods.entry(name).or_default().insert(method);
            }
            let Item::Impl(item) = item else { continue };
            let syn::Type::Path(own) = &*item.self_ty else {
                continue;
            };
            let name = own.path.segments.last().unwrap().ident.to_string();
            if item.trait_.is_some() {
                continue;
            }
            for part in &item.items {
                if let syn::ImplItem::Fn(function) = part
                    && is_public(&function.vis)
                    && !is_gated(&function.attrs)
                {
                    let method = function.sig.ident.to_string();
                    methods.entry(name.clone()).or_default().insert(method);
                }
            }
        }
    }
    methods
}

/// Parses the input of the macro `named!`. Returns the enum, and the method that the macro adds to
/// it.
fn named(input: ParseStream<'_>) -> syn::Result<(String, String)> {
    let mut method = "name".to_owned();
    if input.parse::<Option<Token![fn]>>()?.is_some() {
        method = input.parse::<Ident>()?.to_string();
        input.parse::<Token![;]>()?;
    }
    Ok((method, input.parse::<ItemEnum>()?.ident.to_string()))
}

fn is_public(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Public(_))
}

/// `true` if an item is hidden from the documentation or exists only in tests.
fn is_hidden(item: &Item) -> bool {
    match item {
        Item::Mod(item) => is_gated(&item.attrs),
        Item::Use(item) => is_gated(&item.attrs),
        _ => false,
    }
}

fn is_gated(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let text = match &attribute.meta {
            syn::Meta::List(list) => list.tokens.to_string(),
            _ => return false,
        };
        let hides = attribute.path().is_ident("doc") && text.contains("hidden");
        hides || (attribute.path().is_ident("cfg") && text.contains("test"))
    })
}

#[test]
fn the_public_names_are_those_of_the_snapshot() {
    let mut text = String::new();
    for (package, source) in PUBLISHED {
        let names = public_names(source);
        let count = names
            .iter()
            .filter(|name| is_type_or_function(name))
            .count();
        println!("{package}: {count} names, {} with methods", names.len());
        assert!(!names.is_empty(), "{package}");
        text += &format!("# {package}: {count} names\n");
        text.extend(names.iter().map(|name| format!("{name}\n")));
    }
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(root().join(SNAPSHOT), &text).unwrap();
    }
    let kept = read(SNAPSHOT);
    let [kept_lines, lines] = [&kept, &text].map(|text| text.lines().collect::<BTreeSet<_>>());
    let added: Vec<_> = lines.difference(&kept_lines).collect();
    let removed: Vec<_> = kept_lines.difference(&lines).collect();
    assert!(
        added.is_empty() && removed.is_empty(),
        "added {added:#?}, removed {removed:#?}: review them, then UPDATE_DOCS=1 cargo test --test architecture"
    );
}

/// `true` if the last part of a path names a type, a function or a constant, and not a method or a
/// module.
fn is_type_or_function(name: &str) -> bool {
    let mut parts = name.rsplit("::");
    let own = parts.next().unwrap_or_default();
    let is_type = |part: &str| part.starts_with(char::is_uppercase);
    is_type(own) || (own.contains('_') && !parts.next().is_some_and(is_type))
}

#[test]
fn exports_are_found_in_groups_and_renamed() {
    let file =
        syn::parse_file("pub use a::{B, c::D as E}; use f::G; pub fn h() {} fn i() {}").unwrap();
    let mut names = BTreeSet::new();
    file.items
        .iter()
        .for_each(|item| exported(item, "m::", &mut names));
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    assert_eq!(names, ["m::B", "m::E", "m::h"]);
}
