//! What the code of one module says: the names it imports and the paths it writes, tests left out.

use proc_macro2::{TokenStream, TokenTree};
use syn::ext::IdentExt;
use syn::parse::Parser;
use syn::visit::{self, Visit};
use syn::{Attribute, Item, ItemUse, Meta, UseTree};

use crate::test_only::{
    attributes_of, attributes_of_impl_item, attributes_of_statement, attributes_of_trait_item,
    is_test_only,
};

/// A path as it is written, `["crate", "id", "Id"]`; one that starts with `::` has an empty first segment.
pub(crate) type Segments = Vec<String>;

/// One name of a `use`.
pub(crate) struct Use {
    pub(crate) path: Segments,
    /// Under which name it is known here; `None` for `*`.
    pub(crate) name: Option<String>,
    pub(crate) line: usize,
}

/// A path of several segments in a type, an expression, a pattern, an attribute or a macro.
pub(crate) struct Mention {
    pub(crate) path: Segments,
    pub(crate) line: usize,
}

/// What the code of one module says.
#[derive(Default)]
pub(crate) struct Reading {
    pub(crate) uses: Vec<Use>,
    pub(crate) mentions: Vec<Mention>,
}

impl Reading {
    /// Reads the items of a module, but not the modules inside it.
    pub(crate) fn of(items: &[Item]) -> Self {
        let mut reading = Self::default();
        for item in items {
            reading.visit_item(item);
        }
        reading
    }

    fn add_tree(&mut self, tree: &UseTree, before: &[String], line: usize) {
        let mut path = before.to_vec();
        match tree {
            UseTree::Path(tree) => {
                path.push(tree.ident.unraw().to_string());
                self.add_tree(&tree.tree, &path, line);
            }
            UseTree::Group(group) => group
                .items
                .iter()
                .for_each(|tree| self.add_tree(tree, before, line)),
            UseTree::Glob(_) => self.uses.push(Use {
                path,
                name: None,
                line,
            }),
            UseTree::Name(tree) => {
                // `use a::b::{self}` imports `b`.
                if tree.ident != "self" {
                    path.push(tree.ident.unraw().to_string());
                }
                let name = path.last().cloned();
                self.uses.push(Use {
                    path,
                    name,
                    line: tree.ident.span().start().line,
                });
            }
            UseTree::Rename(tree) => {
                if tree.ident != "self" {
                    path.push(tree.ident.unraw().to_string());
                }
                let name = Some(tree.rename.unraw().to_string());
                self.uses.push(Use {
                    path,
                    name,
                    line: tree.ident.span().start().line,
                });
            }
        }
    }

    /// Reads tokens that are not parsed: every path in them, and every `use`.
    fn add_tokens(&mut self, tokens: TokenStream) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let mut at = 0;
        while at < tokens.len() {
            at += match &tokens[at] {
                TokenTree::Group(group) => {
                    self.add_tokens(group.stream());
                    1
                }
                TokenTree::Ident(ident) if ident == "use" => self.add_use_of_tokens(&tokens[at..]),
                TokenTree::Ident(_) => self.add_path_of_tokens(&tokens[at..]),
                TokenTree::Punct(_) | TokenTree::Literal(_) => 1,
            };
        }
    }

    /// Reads the `use` that the tokens begin with; says how many tokens it took.
    fn add_use_of_tokens(&mut self, tokens: &[TokenTree]) -> usize {
        let is_end =
            |token: &TokenTree| matches!(token, TokenTree::Punct(punct) if punct.as_char() == ';');
        let Some(end) = tokens.iter().position(is_end) else {
            return 1;
        };
        match syn::parse2::<ItemUse>(tokens[..=end].iter().cloned().collect()) {
            Ok(item) => self.visit_item_use(&item),
            Err(_) => return 1,
        }
        end + 1
    }

    /// Reads the path that the tokens begin with; says how many tokens it took.
    fn add_path_of_tokens(&mut self, tokens: &[TokenTree]) -> usize {
        let is_colon = |at: usize| matches!(tokens.get(at), Some(TokenTree::Punct(punct)) if punct.as_char() == ':');
        let mut path = Segments::new();
        let mut at = 0;
        while let Some(TokenTree::Ident(ident)) = tokens.get(at) {
            path.push(ident.unraw().to_string());
            at += 1;
            if !(is_colon(at)
                && is_colon(at + 1)
                && matches!(tokens.get(at + 2), Some(TokenTree::Ident(_))))
            {
                break;
            }
            at += 2;
        }
        self.add_mention(path, tokens[0].span().start().line);
        at
    }

    fn add_mention(&mut self, path: Segments, line: usize) {
        if path.len() > 1 {
            self.mentions.push(Mention { path, line });
        }
    }
}

fn segments_of(path: &syn::Path) -> Segments {
    let global = path.leading_colon.iter().map(|_| String::new());
    global
        .chain(
            path.segments
                .iter()
                .map(|segment| segment.ident.unraw().to_string()),
        )
        .collect()
}

impl Visit<'_> for Reading {
    fn visit_item(&mut self, item: &Item) {
        // A module inside is read on its own.
        if !is_test_only(attributes_of(item)) && !matches!(item, Item::Mod(_)) {
            visit::visit_item(self, item);
        }
    }

    fn visit_impl_item(&mut self, item: &syn::ImplItem) {
        if !is_test_only(attributes_of_impl_item(item)) {
            visit::visit_impl_item(self, item);
        }
    }

    fn visit_trait_item(&mut self, item: &syn::TraitItem) {
        if !is_test_only(attributes_of_trait_item(item)) {
            visit::visit_trait_item(self, item);
        }
    }

    fn visit_stmt(&mut self, statement: &syn::Stmt) {
        if !is_test_only(attributes_of_statement(statement)) {
            visit::visit_stmt(self, statement);
        }
    }

    fn visit_field(&mut self, field: &syn::Field) {
        if !is_test_only(&field.attrs) {
            visit::visit_field(self, field);
        }
    }

    fn visit_field_value(&mut self, field: &syn::FieldValue) {
        if !is_test_only(&field.attrs) {
            visit::visit_field_value(self, field);
        }
    }

    fn visit_variant(&mut self, variant: &syn::Variant) {
        if !is_test_only(&variant.attrs) {
            visit::visit_variant(self, variant);
        }
    }

    fn visit_arm(&mut self, arm: &syn::Arm) {
        if !is_test_only(&arm.attrs) {
            visit::visit_arm(self, arm);
        }
    }

    fn visit_item_use(&mut self, item: &ItemUse) {
        let global: Segments = item.leading_colon.iter().map(|_| String::new()).collect();
        self.add_tree(&item.tree, &global, item.use_token.span.start().line);
    }

    // Says who may look, not what is used.
    fn visit_visibility(&mut self, _: &syn::Visibility) {}

    fn visit_path(&mut self, path: &syn::Path) {
        let line = path
            .segments
            .first()
            .map_or(0, |first| first.ident.span().start().line);
        self.add_mention(segments_of(path), line);
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &syn::Macro) {
        self.add_tokens(call.tokens.clone());
        visit::visit_macro(self, call);
    }

    fn visit_attribute(&mut self, attribute: &Attribute) {
        // `cfg` and `doc` name no code, nor do the namespaces of lints.
        let quiet = ["doc", "cfg", "allow", "warn", "deny", "expect"];
        if quiet.iter().any(|name| attribute.path().is_ident(name)) {
            return;
        }
        if let Meta::List(list) = &attribute.meta {
            self.add_tokens(list.tokens.clone());
            // `#[serde(with = "crate::id::text")]`
            for token in list.tokens.clone() {
                let TokenTree::Literal(literal) = token else {
                    continue;
                };
                let Ok(text) = syn::parse_str::<syn::LitStr>(&literal.to_string()) else {
                    continue;
                };
                if let Ok(path) = syn::Path::parse_mod_style.parse_str(&text.value()) {
                    self.add_mention(segments_of(&path), literal.span().start().line);
                }
            }
        }
        visit::visit_attribute(self, attribute);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(text: &str) -> Reading {
        Reading::of(&syn::parse_file(text).expect("a file").items)
    }

    fn uses(text: &str) -> Vec<String> {
        let name = |name: Option<String>| name.unwrap_or_else(|| "*".to_owned());
        reading(text)
            .uses
            .into_iter()
            .map(|used| format!("{} as {}", used.path.join("::"), name(used.name)))
            .collect()
    }

    fn mentions(text: &str) -> Vec<String> {
        reading(text)
            .mentions
            .into_iter()
            .map(|mention| mention.path.join("::"))
            .collect()
    }

    #[test]
    fn every_name_of_a_nested_use_over_several_lines_is_read() {
        let text = "use crate::{\n    a::{self, B, c::*},\n    d as e,\n};\npub(crate) use ::std::r#fn as _;";
        let read = [
            "crate::a as a",
            "crate::a::B as B",
            "crate::a::c as *",
            "crate::d as e",
            "::std::fn as _",
        ];
        assert_eq!(uses(text), read);
        assert_eq!(reading(text).uses[1].line, 2);
    }

    #[test]
    fn paths_of_types_expressions_patterns_and_attributes_are_read() {
        let text = "#[serde(with = \"crate::a::b\")] struct S { field: Vec<super::T> }\n\
                    fn f() -> Result<(), u8> { use crate::g::H; if let c::D(_) = crate::e::<self::F>() {} }";
        assert_eq!(
            mentions(text),
            ["crate::a::b", "super::T", "c::D", "crate::e", "self::F"]
        );
        assert_eq!(uses(text), ["crate::g::H as H"]);
    }

    #[test]
    fn paths_in_macros_are_read_to_any_depth() {
        let text = "fn f() { vec![(1, [crate::a::B, $crate::c(d::E.x)])]; go! { use crate::{g, h}; } }\n\
                    macro_rules! m { ($x:ty) => { crate::k::L } }";
        assert_eq!(
            mentions(text),
            ["crate::a::B", "crate::c", "d::E", "crate::k::L"]
        );
        assert_eq!(uses(text), ["crate::g as g", "crate::h as h"]);
    }

    #[test]
    fn comments_strings_visibilities_and_tests_are_not_code() {
        let text = "//! crate::a::b\n/// [`crate::c::d`]\npub(in crate::e) fn f() { let g = \"crate::h::i\"; } // crate::j::k\n\
                    #[cfg(test)] use crate::l;\n#[cfg(test)] mod tests { use crate::m; }\n\
                    impl X { #[cfg(test)] fn n() { crate::o::p() } }\n#[test] fn q() { crate::r::s() }";
        assert_eq!(mentions(text), Vec::<String>::new());
        assert_eq!(uses(text), Vec::<String>::new());
    }
}
