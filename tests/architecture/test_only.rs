//! What is compiled for tests only.

use syn::punctuated::Punctuated;
use syn::{Attribute, ImplItem, Item, Meta, Stmt, Token, TraitItem};

/// Whether the attributes leave the item out of every build but tests: `#[test]`, `#[cfg(test)]`, `#[cfg(all(test, ..))]`.
pub(crate) fn is_test_only(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        Meta::Path(path) => path.is_ident("test"),
        Meta::List(list) if list.path.is_ident("cfg") => list
            .parse_args()
            .is_ok_and(|condition| needs_test(&condition)),
        _ => false,
    })
}

/// Whether a condition of `cfg` can hold in tests only.
fn needs_test(condition: &Meta) -> bool {
    let Meta::List(list) = condition else {
        return condition.path().is_ident("test");
    };
    let parts = list
        .parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated)
        .unwrap_or_default();
    match list.path.get_ident().map(ToString::to_string).as_deref() {
        Some("all") => parts.iter().any(needs_test),
        Some("any") => !parts.is_empty() && parts.iter().all(needs_test),
        _ => false,
    }
}

pub(crate) fn attributes_of(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::ExternCrate(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::ForeignMod(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::TraitAlias(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Union(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

pub(crate) fn attributes_of_impl_item(item: &ImplItem) -> &[Attribute] {
    match item {
        ImplItem::Const(item) => &item.attrs,
        ImplItem::Fn(item) => &item.attrs,
        ImplItem::Type(item) => &item.attrs,
        ImplItem::Macro(item) => &item.attrs,
        _ => &[],
    }
}

pub(crate) fn attributes_of_trait_item(item: &TraitItem) -> &[Attribute] {
    match item {
        TraitItem::Const(item) => &item.attrs,
        TraitItem::Fn(item) => &item.attrs,
        TraitItem::Type(item) => &item.attrs,
        TraitItem::Macro(item) => &item.attrs,
        _ => &[],
    }
}

/// The attributes of a statement that is a `let` or a macro; the others are items or expressions.
pub(crate) fn attributes_of_statement(statement: &Stmt) -> &[Attribute] {
    match statement {
        Stmt::Local(local) => &local.attrs,
        Stmt::Macro(statement) => &statement.attrs,
        Stmt::Item(_) | Stmt::Expr(..) => &[],
    }
}

#[test]
fn a_condition_that_only_tests_meet_is_seen() {
    let is_test = |text: &str| is_test_only(attributes_of(&syn::parse_str(text).expect("an item")));
    for text in [
        "#[cfg(test)] mod a;",
        "#[cfg(all(test, loom))] fn a() {}",
        "#[test] fn a() {}",
        "#[cfg(any(test))] use b;",
    ] {
        assert!(is_test(text), "{text}");
    }
    for text in [
        "#[cfg(not(test))] mod a;",
        "#[cfg(any(test, unix))] fn a() {}",
        "#[cfg(feature = \"test\")] use b;",
    ] {
        assert!(!is_test(text), "{text}");
    }
}
