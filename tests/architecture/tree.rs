//! The modules of the crate and the names in each: which file defines what a path means.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use proc_macro2::{TokenStream, TokenTree};
use syn::Item;
use syn::ext::IdentExt;

use crate::reading::{Mention, Reading, Segments, Use};
use crate::source::{Source, folder_of, name_of};
use crate::test_only::{attributes_of, is_test_only};

pub(crate) type ModuleId = usize;

/// What a name stands for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Meaning {
    Module(ModuleId),
    /// A type, function or other item, by name, of the module that defines it.
    Item(ModuleId, String),
    /// Something of another crate.
    External(String),
}

/// How a name came into a module.
enum Binding {
    Module(ModuleId),
    Item,
    Import(Segments),
}

/// A module that is not for tests only.
pub(crate) struct Module {
    pub(crate) name: String,
    pub(crate) file: String,
    pub(crate) mentions: Vec<Mention>,
    pub(crate) uses: Vec<Use>,
    parent: Option<ModuleId>,
    names: HashMap<String, Vec<Binding>>,
    defines_items: bool,
}

/// The modules of a library and of the program on top of it.
#[derive(Default)]
pub(crate) struct Tree {
    pub(crate) modules: Vec<Module>,
    /// The files that only tests are built from.
    pub(crate) test_files: BTreeSet<String>,
    /// Declarations of modules that have no file.
    pub(crate) without_file: Vec<String>,
    package: String,
    crates: BTreeSet<String>,
    roots: BTreeMap<String, ModuleId>,
}

/// A lookup on its way: the bindings it has passed, by module, name and number, so that it cannot go in circles.
type Passed = Vec<(ModuleId, String, usize)>;

impl Tree {
    /// Reads the tree below `src/lib.rs` and `src/main.rs`, as far as they are there.
    pub(crate) fn of(sources: &[Source], package: &str, crates: &[&str]) -> Self {
        let crates = crates.iter().map(|name| (*name).to_owned()).collect();
        let mut tree = Self {
            package: package.to_owned(),
            crates,
            ..Self::default()
        };
        let texts: HashMap<&str, &str> = sources
            .iter()
            .map(|source| (&*source.path, &*source.text))
            .collect();
        for root in ["src/lib.rs", "src/main.rs"]
            .into_iter()
            .filter(|root| texts.contains_key(root))
        {
            let items = parse(root, texts[root]);
            let id = tree.add_module(None, "crate", root, &items, "src", &texts);
            tree.roots.insert(root.to_owned(), id);
        }
        tree
    }

    /// Adds a module and all below it; `folder` is where the files of its own modules lie.
    fn add_module(
        &mut self,
        parent: Option<ModuleId>,
        name: &str,
        file: &str,
        items: &[Item],
        folder: &str,
        texts: &HashMap<&str, &str>,
    ) -> ModuleId {
        let Reading { uses, mentions } = Reading::of(items);
        let mut names: HashMap<String, Vec<Binding>> = HashMap::new();
        for used in &uses {
            if let Some(name) = &used.name {
                names
                    .entry(name.clone())
                    .or_default()
                    .push(Binding::Import(used.path.clone()));
            }
        }
        let id = self.modules.len();
        let (name, file) = (name.to_owned(), file.to_owned());
        self.modules.push(Module {
            name,
            file,
            mentions,
            uses,
            parent,
            names,
            defines_items: false,
        });
        for item in items {
            match item {
                Item::Use(_) | Item::ExternCrate(_) => {}
                Item::Mod(module) => self.add_inner_module(id, module, folder, texts),
                _ if is_test_only(attributes_of(item)) => {}
                _ => {
                    self.modules[id].defines_items = true;
                    for name in names_of_item(item) {
                        self.modules[id]
                            .names
                            .entry(name)
                            .or_default()
                            .push(Binding::Item);
                    }
                }
            }
        }
        id
    }

    fn add_inner_module(
        &mut self,
        parent: ModuleId,
        module: &syn::ItemMod,
        folder: &str,
        texts: &HashMap<&str, &str>,
    ) {
        let name = module.ident.unraw().to_string();
        let outer_file = self.modules[parent].file.clone();
        let is_test = is_test_only(&module.attrs);
        let inner_folder = format!("{folder}/{name}");
        let id = if let Some((_, items)) = &module.content {
            if is_test {
                return;
            }
            self.modules[parent].defines_items = true;
            self.add_module(
                Some(parent),
                &name,
                &outer_file,
                items,
                &inner_folder,
                texts,
            )
        } else {
            let named =
                path_attribute(module).map(|path| format!("{}/{path}", folder_of(&outer_file)));
            let candidates = named.map_or(
                vec![
                    format!("{inner_folder}.rs"),
                    format!("{inner_folder}/mod.rs"),
                ],
                |path| vec![path],
            );
            let Some(file) = candidates
                .into_iter()
                .find(|path| texts.contains_key(&**path))
            else {
                self.without_file
                    .push(format!("{outer_file}: mod {name} has no file"));
                return;
            };
            if is_test {
                self.test_files.insert(file.clone());
            }
            let items = parse(&file, texts[&*file]);
            // The files of `mod.rs` lie beside it, those of any other file in a folder of its name.
            let inner_folder = if name_of(&file) == "mod.rs" {
                folder_of(&file)
            } else {
                file.trim_end_matches(".rs")
            };
            if is_test {
                self.add_test_files(&items, inner_folder, texts);
                return;
            }
            self.add_module(Some(parent), &name, &file, &items, inner_folder, texts)
        };
        self.modules[parent]
            .names
            .entry(name)
            .or_default()
            .push(Binding::Module(id));
    }

    /// Notes the files that the modules of a test declare in turn.
    fn add_test_files(&mut self, items: &[Item], folder: &str, texts: &HashMap<&str, &str>) {
        for item in items {
            let Item::Mod(module) = item else { continue };
            let inner = format!("{folder}/{}", module.ident.unraw());
            for file in [format!("{inner}.rs"), format!("{inner}/mod.rs")] {
                if let Some(text) = texts.get(&*file).filter(|_| module.content.is_none()) {
                    self.add_test_files(&parse(&file, text), &inner, texts);
                    self.test_files.insert(file);
                }
            }
        }
    }

    /// Whether a module is a face: it declares and re-exports, and defines nothing itself.
    pub(crate) fn is_face(&self, module: ModuleId) -> bool {
        let module = &self.modules[module];
        ["mod.rs", "lib.rs"].contains(&name_of(&module.file)) && !module.defines_items
    }

    /// What a path means that is written in this module; nothing if it names nothing that is known.
    pub(crate) fn resolve(&self, from: ModuleId, path: &[String]) -> BTreeSet<Meaning> {
        self.resolve_passing(from, path, &mut Passed::new())
    }

    fn resolve_passing(
        &self,
        from: ModuleId,
        path: &[String],
        passed: &mut Passed,
    ) -> BTreeSet<Meaning> {
        let Some((first, rest)) = path.split_first() else {
            return BTreeSet::new();
        };
        let mut meanings = match &**first {
            "" => {
                return rest
                    .first()
                    .map(|name| Meaning::External(name.clone()))
                    .into_iter()
                    .collect();
            }
            "crate" => BTreeSet::from([Meaning::Module(self.root_of(from))]),
            "self" => BTreeSet::from([Meaning::Module(from)]),
            "super" => self.modules[from]
                .parent
                .map(Meaning::Module)
                .into_iter()
                .collect(),
            _ => self.look_up(from, first, passed),
        };
        if meanings.is_empty() {
            meanings.extend(self.outside_meaning(first));
        }
        for segment in rest {
            // A function may be called like a module, but nothing can lie in it.
            if meanings
                .iter()
                .any(|meaning| matches!(meaning, Meaning::Module(_)))
            {
                meanings.retain(|meaning| matches!(meaning, Meaning::Module(_)));
            }
            let found = meanings.iter().flat_map(|meaning| match meaning {
                Meaning::Module(id) if segment == "super" => self.modules[*id]
                    .parent
                    .map(Meaning::Module)
                    .into_iter()
                    .collect(),
                Meaning::Module(id) => self.look_up(*id, segment, passed),
                // A variant or an associated item: where the item itself is.
                Meaning::Item(..) | Meaning::External(_) => BTreeSet::from([meaning.clone()]),
            });
            meanings = found.collect();
        }
        meanings
    }

    fn look_up(&self, module: ModuleId, name: &str, passed: &mut Passed) -> BTreeSet<Meaning> {
        let mut meanings = BTreeSet::new();
        let bindings = self.modules[module].names.get(name).into_iter().flatten();
        for (number, binding) in bindings.enumerate() {
            match binding {
                Binding::Module(id) => {
                    meanings.insert(Meaning::Module(*id));
                }
                Binding::Item => {
                    meanings.insert(Meaning::Item(module, name.to_owned()));
                }
                Binding::Import(path) => {
                    let step = (module, name.to_owned(), number);
                    if !passed.contains(&step) {
                        passed.push(step);
                        meanings.extend(self.resolve_passing(module, path, passed));
                        passed.pop();
                    }
                }
            }
        }
        if !meanings.is_empty() {
            return meanings;
        }
        let globs = self.modules[module]
            .uses
            .iter()
            .filter(|used| used.name.is_none());
        for (number, glob) in globs.enumerate() {
            let step = (module, format!("{name} of *"), number);
            if passed.contains(&step) {
                continue;
            }
            passed.push(step);
            for meaning in self.resolve_passing(module, &glob.path, passed) {
                if let Meaning::Module(inner) = meaning {
                    meanings.extend(self.look_up(inner, name, passed));
                }
            }
            passed.pop();
        }
        meanings
    }

    /// What a name means that no module defines: a crate, or the library seen from the program.
    fn outside_meaning(&self, name: &str) -> Option<Meaning> {
        if name == self.package {
            return self.roots.get("src/lib.rs").copied().map(Meaning::Module);
        }
        self.crates
            .contains(name)
            .then(|| Meaning::External(name.to_owned()))
    }

    fn root_of(&self, mut module: ModuleId) -> ModuleId {
        while let Some(parent) = self.modules[module].parent {
            module = parent;
        }
        module
    }

    /// The innermost module that a path names itself, before any re-export is followed.
    pub(crate) fn named_module(&self, from: ModuleId, path: &[String]) -> Option<ModuleId> {
        let mut at = None;
        for segment in path {
            at = match (&**segment, at) {
                ("crate", None) => Some(self.root_of(from)),
                ("self", None) => Some(from),
                ("super", inner) => Some(self.modules[inner.unwrap_or(from)].parent?),
                (name, inner) => {
                    let bindings = self.modules[inner.unwrap_or(from)]
                        .names
                        .get(name)
                        .into_iter()
                        .flatten();
                    let mut modules = bindings.filter_map(|binding| match binding {
                        Binding::Module(id) => Some(*id),
                        Binding::Item | Binding::Import(_) => None,
                    });
                    match modules.next() {
                        Some(module) => Some(module),
                        None => return at,
                    }
                }
            };
        }
        at
    }

    /// Every meaning of the names of a module, for whoever imports all of them.
    pub(crate) fn all_names(&self, module: ModuleId) -> BTreeSet<Meaning> {
        let names = self.modules[module].names.keys();
        names
            .flat_map(|name| self.look_up(module, name, &mut Passed::new()))
            .collect()
    }
}

fn parse(path: &str, text: &str) -> Vec<Item> {
    syn::parse_file(text)
        .unwrap_or_else(|error| panic!("{path}:{}: {error}", error.span().start().line))
        .items
}

/// The names that an item defines: one, none, or those inside the call of a macro.
fn names_of_item(item: &Item) -> Vec<String> {
    let name = match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Macro(item) => match &item.ident {
            Some(name) => name,
            None => return names_of_tokens(item.mac.tokens.clone()),
        },
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::TraitAlias(item) => &item.ident,
        Item::Type(item) => &item.ident,
        Item::Union(item) => &item.ident,
        _ => return Vec::new(),
    };
    vec![name.unraw().to_string()]
}

/// The names that follow a keyword of definition, as in `pin_project! { pub struct Body { .. } }`.
fn names_of_tokens(tokens: TokenStream) -> Vec<String> {
    const KEYWORDS: [&str; 8] = [
        "const", "enum", "fn", "static", "struct", "trait", "type", "union",
    ];
    let word_of = |token| match token {
        TokenTree::Ident(ident) => Some(ident.unraw().to_string()),
        _ => None,
    };
    let words: Vec<Option<String>> = tokens.into_iter().map(word_of).collect();
    let is_keyword =
        |word: &Option<String>| word.as_deref().is_some_and(|word| KEYWORDS.contains(&word));
    words
        .windows(2)
        .filter(|pair| is_keyword(&pair[0]))
        .filter_map(|pair| pair[1].clone())
        .collect()
}

/// The file that `#[path = ".."]` names.
fn path_attribute(module: &syn::ItemMod) -> Option<String> {
    let attribute = module
        .attrs
        .iter()
        .find(|attribute| attribute.path().is_ident("path"))?;
    let syn::Expr::Lit(value) = &attribute.meta.require_name_value().ok()?.value else {
        return None;
    };
    let syn::Lit::Str(text) = &value.lit else {
        return None;
    };
    Some(text.value())
}
