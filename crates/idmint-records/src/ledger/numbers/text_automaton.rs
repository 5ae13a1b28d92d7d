//! Finite automata that accept the texts that a template can write.

use std::cmp::Ordering;
use std::collections::{BTreeSet, HashMap};

use super::number_check::NumberCheck;
use super::series_name::is_letter;
use super::text_field::{PartForm, TextField, splits};

/// A set of characters: any number of ASCII characters, or a single character outside of ASCII.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Letters {
    ascii: u128,
    other: Option<char>,
}

impl Letters {
    fn one(letter: char) -> Letters {
        let is_ascii = letter.is_ascii();
        Letters {
            ascii: if is_ascii { 1 << u32::from(letter) } else { 0 },
            other: (!is_ascii).then_some(letter),
        }
    }

    fn matching(is_in: impl Fn(u8) -> bool) -> Letters {
        let letters = (0..128).filter(|letter| is_in(*letter));
        Letters {
            ascii: letters.fold(0, |set, letter| set | 1 << letter),
            other: None,
        }
    }

    fn digits(from: u8, to: u8) -> Letters {
        Letters::matching(|letter| (b'0' + from..=b'0' + to).contains(&letter))
    }

    /// Returns the characters that are in both sets.
    pub(super) fn and(self, other: Letters) -> Letters {
        Letters {
            ascii: self.ascii & other.ascii,
            other: self.other.filter(|_| self.other == other.other),
        }
    }

    /// Returns the characters of the set. Lower-case letters and digits come first, because they
    /// make better examples.
    pub(super) fn iter(self) -> impl Iterator<Item = char> {
        let order = (b'a'..=b'z').chain(b'0'..=b'9').chain(0..b'0');
        let order = order.chain(b'9' + 1..b'a').chain(b'z' + 1..128);
        let ascii = order.filter(move |letter| self.ascii & 1 << letter != 0);
        ascii.map(char::from).chain(self.other)
    }
}

/// The meaning of one character of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Role {
    /// A fixed character of the template.
    Literal,
    /// One character of the part with this index.
    Part(usize),
    /// The last character of an abbreviated part, such as the `6` in `26`. The full value is known
    /// only here. The fields are the index of the part and the full value, such as `2026`.
    Value(usize, String),
    /// A digit of the number.
    Number,
    /// The check character at this position.
    Check(usize),
}

/// A step of an automaton, which reads one character.
#[derive(Debug, Clone)]
pub(super) struct Edge {
    pub(super) letters: Letters,
    pub(super) role: Role,
    pub(super) to: usize,
}

/// A state of an automaton.
#[derive(Debug, Clone, Default)]
pub(super) struct Node {
    pub(super) edges: Vec<Edge>,
    /// `true` if a text may end here.
    pub(super) is_final: bool,
}

/// A nondeterministic automaton in which every step reads one character. Each way to split a text
/// into the fields of a template is exactly one path, so a text with two paths has two readings.
#[derive(Debug, Clone)]
pub(super) struct TextAutomaton {
    pub(super) nodes: Vec<Node>,
    pub(super) start: usize,
}

impl TextAutomaton {
    /// Returns the automaton for texts of these fields.
    pub(super) fn of_fields(fields: &[TextField]) -> TextAutomaton {
        let mut automaton = TextAutomaton::empty();
        for field in fields.iter().rev() {
            automaton.prepend(&TextAutomaton::of_field(field));
        }
        automaton
    }

    /// Returns the automaton for all texts of a template with these fields and check characters.
    ///
    /// `name` contains the fields of the names of the series. The automaton does not accept texts
    /// of series whose names match a pattern in `excluded`.
    pub(super) fn of_rule(
        fields: &[TextField],
        name: &[TextField],
        excluded: &[Vec<TextField>],
        check: Option<NumberCheck>,
    ) -> TextAutomaton {
        // `.` and `..` are not valid names, but some patterns match them, so exclude them too.
        let dots = [".", ".."].into_iter();
        let dots = dots.filter(|dots| !splits(name, dots, 1).is_empty());
        let dots = dots.map(|dots| vec![TextField::Literal(dots.to_owned())]);
        let excluded: Vec<_> = excluded.iter().cloned().chain(dots).collect();
        let mut names = Names::outside(&excluded);
        let mut union = TextAutomaton {
            nodes: vec![Node::default()],
            start: 0,
        };
        for spans in names.spans(name) {
            let mut automaton = TextAutomaton::of_check(check);
            for field in fields.iter().rev() {
                automaton.prepend(&match field {
                    TextField::Part { part, form } => names.restricted(*part, form, &spans[*part]),
                    _ => TextAutomaton::of_field(field),
                });
            }
            union.add(automaton);
        }
        union
    }

    /// Returns the automaton for the empty text.
    fn empty() -> TextAutomaton {
        TextAutomaton {
            nodes: vec![Node {
                edges: Vec::new(),
                is_final: true,
            }],
            start: 0,
        }
    }

    fn of_check(check: Option<NumberCheck>) -> TextAutomaton {
        let mut chain = TextAutomaton::empty();
        for place in (0..check.map_or(0, NumberCheck::width)).rev() {
            chain.push_front(Letters::digits(0, 9), Role::Check(place));
        }
        chain
    }

    fn of_field(field: &TextField) -> TextAutomaton {
        match field {
            TextField::Literal(literal) => {
                let mut chain = TextAutomaton::empty();
                for letter in literal.chars().rev() {
                    chain.push_front(Letters::one(letter), Role::Literal);
                }
                chain
            }
            TextField::Number { width, start, max } => {
                NumberStates::new(usize::from(*width), *start, *max).automaton()
            }
            TextField::Part { part, form } => TextAutomaton::of_part(*part, form),
        }
    }

    fn of_part(part: usize, form: &PartForm) -> TextAutomaton {
        let mut automaton = TextAutomaton::empty();
        let step = |letters, to| Edge {
            letters,
            role: Role::Part(part),
            to,
        };
        match form {
            PartForm::Rest => automaton.nodes[0]
                .edges
                .push(step(Letters::matching(is_letter), 0)),
            PartForm::Open => {
                let letters = Letters::matching(|letter| is_letter(letter) && letter != b'-');
                automaton.nodes[0].edges.push(step(letters, 0));
                automaton.push_front(letters, Role::Part(part));
            }
            PartForm::Listed(values) => {
                for value in values {
                    let letters = value.chars().map(|letter| match letter {
                        '#' => Letters::digits(0, 9),
                        letter => Letters::one(letter),
                    });
                    automaton.add_path(letters.collect(), |_| Role::Part(part));
                }
                automaton.nodes[0].is_final = false;
            }
            PartForm::LastTwo(years) => return TextAutomaton::of_last_two(part, years.texts()),
        }
        automaton
    }

    /// Returns the automaton for the last two digits of these years.
    fn of_last_two(part: usize, years: impl Iterator<Item = String>) -> TextAutomaton {
        let mut automaton = TextAutomaton::empty();
        automaton.nodes[0].is_final = false;
        for year in years {
            let letters = year.chars().skip(2).map(Letters::one);
            automaton.add_path(letters.collect(), |is_last| match is_last {
                true => Role::Value(part, year.clone()),
                false => Role::Literal,
            });
        }
        automaton
    }

    fn push_front(&mut self, letters: Letters, role: Role) {
        let edge = Edge {
            letters,
            role,
            to: self.start,
        };
        self.start = self.nodes.len();
        self.nodes.push(Node {
            edges: vec![edge],
            is_final: false,
        });
    }

    /// Adds a path that reads these characters, from the start of the automaton. Paths with a
    /// common beginning share its nodes. `role` returns the meaning of a character, and gets `true`
    /// for the last one.
    fn add_path(&mut self, letters: Vec<Letters>, role: impl Fn(bool) -> Role) {
        let (mut node, len) = (self.start, letters.len());
        for (at, letters) in letters.into_iter().enumerate() {
            let role = role(at + 1 == len);
            let edges = &self.nodes[node].edges;
            let shared = edges
                .iter()
                .find(|edge| edge.letters == letters && edge.role == role);
            node = match shared {
                Some(edge) => edge.to,
                None => {
                    let to = self.nodes.len();
                    self.nodes.push(Node::default());
                    self.nodes[node].edges.push(Edge { letters, role, to });
                    to
                }
            };
        }
        self.nodes[node].is_final = true;
    }

    /// Puts `first` before this automaton. The result accepts a text of `first`, followed by a text
    /// that this automaton accepted before.
    fn prepend(&mut self, first: &TextAutomaton) {
        let (offset, next) = (self.nodes.len(), self.nodes[self.start].clone());
        for node in &first.nodes {
            let moved = node.edges.iter().map(|edge| Edge {
                to: edge.to + offset,
                ..edge.clone()
            });
            let mut edges: Vec<_> = moved.collect();
            if node.is_final {
                edges.extend(next.edges.iter().cloned());
            }
            let is_final = node.is_final && next.is_final;
            self.nodes.push(Node { edges, is_final });
        }
        self.start = first.start + offset;
    }

    /// Makes this automaton also accept the texts of `other`.
    fn add(&mut self, other: TextAutomaton) {
        let offset = self.nodes.len();
        let begin = other.start + offset;
        self.nodes.extend(other.nodes);
        for edge in self.nodes[offset..]
            .iter_mut()
            .flat_map(|node| &mut node.edges)
        {
            edge.to += offset;
        }
        let Node { edges, is_final } = self.nodes[begin].clone();
        self.nodes[self.start].edges.extend(edges);
        self.nodes[self.start].is_final |= is_final;
    }
}

/// A builder of the automaton for the numbers from `start` to `max`, with at least `width` digits.
/// The automaton reads the digits from left to right, and compares them with both bounds.
struct NumberStates {
    width: usize,
    start: Vec<u8>,
    max: Vec<u8>,
}

/// The number of digits that were read, and how these digits compare with the first digits of the
/// least and the greatest number of the series.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct NumberState {
    len: usize,
    /// `true` if the first digit is a zero, which pads the number to the width.
    is_padded: bool,
    to_start: Ordering,
    to_max: Ordering,
}

impl NumberStates {
    fn new(width: usize, start: u64, max: u64) -> NumberStates {
        let digits = |number: u64| {
            number
                .to_string()
                .bytes()
                .map(|digit| digit - b'0')
                .collect()
        };
        NumberStates {
            width,
            start: digits(start),
            max: digits(max),
        }
    }

    fn automaton(&self) -> TextAutomaton {
        let begin = NumberState {
            len: 0,
            is_padded: false,
            to_start: Ordering::Equal,
            to_max: Ordering::Equal,
        };
        let (mut states, mut known) = (vec![begin], HashMap::from([(begin, 0)]));
        let (mut nodes, mut at) = (Vec::new(), 0);
        while let Some(state) = states.get(at).copied() {
            let mut edges: Vec<Edge> = Vec::new();
            for digit in 0..=9 {
                let Some(next) = self.next(state, digit) else {
                    continue;
                };
                let to = *known.entry(next).or_insert_with(|| {
                    states.push(next);
                    states.len() - 1
                });
                let letters = Letters::digits(digit, digit);
                match edges.iter_mut().find(|edge| edge.to == to) {
                    Some(edge) => edge.letters.ascii |= letters.ascii,
                    None => edges.push(Edge {
                        letters,
                        role: Role::Number,
                        to,
                    }),
                }
            }
            nodes.push(Node {
                edges,
                is_final: self.is_final(state),
            });
            at += 1;
        }
        TextAutomaton { nodes, start: 0 }
    }

    /// Returns the state after one more digit, or `None` if no number begins with these digits.
    fn next(&self, state: NumberState, digit: u8) -> Option<NumberState> {
        let is_padded = if state.len == 0 {
            digit == 0
        } else {
            state.is_padded
        };
        let compared = |so_far: Ordering, bound: &[u8]| {
            // A padded number has exactly `width` digits, so compare it with a padded bound: `007`
            // with `012` if the bound is 12.
            let padding = if is_padded {
                self.width.saturating_sub(bound.len())
            } else {
                0
            };
            let against = match state.len.checked_sub(padding) {
                None => Some(&0),
                Some(at) => bound.get(at),
            };
            against.map_or(Ordering::Equal, |against| so_far.then(digit.cmp(against)))
        };
        let len_max = if is_padded {
            self.width
        } else {
            self.max.len()
        };
        (state.len < len_max).then(|| NumberState {
            len: state.len + 1,
            is_padded,
            to_start: compared(state.to_start, &self.start),
            to_max: compared(state.to_max, &self.max),
        })
    }

    fn is_final(&self, state: NumberState) -> bool {
        if state.is_padded {
            let reaches_start = self.start.len() <= self.width && state.to_start.is_ge();
            let is_below_max = self.max.len() > self.width || state.to_max.is_le();
            return state.len == self.width && reaches_start && is_below_max;
        }
        let is_within = |bound: &[u8], compared: Ordering, outside: Ordering| {
            state.len.cmp(&bound.len()).then(compared) != outside
        };
        state.len >= self.width
            && is_within(&self.start, state.to_start, Ordering::Less)
            && is_within(&self.max, state.to_max, Ordering::Greater)
    }
}

/// A deterministic automaton for the names of series that match none of the excluded patterns.
struct Names {
    patterns: Vec<TextAutomaton>,
    /// For each state, the nodes that a name can have reached in the excluded patterns' automata. A
    /// node is given as the index of its pattern and its index in the automaton of this pattern.
    states: Vec<BTreeSet<(usize, usize)>>,
    known: HashMap<BTreeSet<(usize, usize)>, usize>,
}

/// The states of [`Names`], an automaton that reads series names, around one part of a name: the
/// state before the part (`from`), and the possible states after it (`to`).
#[derive(Debug, Clone)]
struct Span {
    from: usize,
    to: BTreeSet<usize>,
}

impl Names {
    fn outside(excluded: &[Vec<TextField>]) -> Names {
        let patterns: Vec<_> = excluded
            .iter()
            .map(|fields| TextAutomaton::of_fields(fields))
            .collect();
        let starts = patterns.iter().enumerate();
        let begin: BTreeSet<_> = starts.map(|(at, pattern)| (at, pattern.start)).collect();
        Names {
            patterns,
            states: vec![begin.clone()],
            known: HashMap::from([(begin, 0)]),
        }
    }

    fn step(&mut self, state: usize, letter: char) -> usize {
        let letter = Letters::one(letter);
        let mut next = BTreeSet::new();
        for (pattern, node) in &self.states[state] {
            let edges = &self.patterns[*pattern].nodes[*node].edges;
            let taken = edges
                .iter()
                .filter(|edge| edge.letters.and(letter) == letter);
            next.extend(taken.map(|edge| (*pattern, edge.to)));
        }
        let states = &mut self.states;
        *self.known.entry(next).or_insert_with_key(|next| {
            states.push(next.clone());
            states.len() - 1
        })
    }

    fn after(&mut self, state: usize, text: &str) -> usize {
        text.chars()
            .fold(state, |state, letter| self.step(state, letter))
    }

    /// Returns `true` if a series name that ends in this state matches no excluded pattern.
    fn is_final(&self, state: usize) -> bool {
        let mut nodes = self.states[state].iter();
        !nodes.any(|(pattern, node)| self.patterns[*pattern].nodes[*node].is_final)
    }

    /// Splits the names with these fields that match no excluded pattern into groups, so that each
    /// name belongs to exactly one group. Returns, for each group, one span for each part of the
    /// name. A span has the states before and after the part. Within a group, each part can be
    /// chosen independently.
    fn spans(&mut self, name: &[TextField]) -> Vec<Vec<Span>> {
        self.spans_from(name, 0)
    }

    fn spans_from(&mut self, name: &[TextField], state: usize) -> Vec<Vec<Span>> {
        let Some((first, rest)) = name.split_first() else {
            return if self.is_final(state) {
                vec![Vec::new()]
            } else {
                Vec::new()
            };
        };
        match first {
            TextField::Literal(literal) => {
                let state = self.after(state, literal);
                self.spans_from(rest, state)
            }
            TextField::Part { .. } => {
                let fragment = TextAutomaton::of_field(first);
                let (literal, after) = match rest.split_first() {
                    Some((TextField::Literal(literal), after)) => (literal.as_str(), after),
                    _ => ("", rest),
                };
                // Group the possible states after this part of the name by the state to which the
                // next fixed characters lead. Within a group, the name can go on in the same ways.
                let mut ends: Vec<(usize, BTreeSet<usize>)> = Vec::new();
                for end in self.ends(&fragment, state) {
                    let behind = self.after(end, literal);
                    let behind = match after {
                        [] => usize::from(self.is_final(behind)),
                        _ => behind,
                    };
                    match ends.iter_mut().find(|(known, _)| *known == behind) {
                        Some((_, alike)) => alike.extend([end]),
                        None => ends.push((behind, BTreeSet::from([end]))),
                    }
                }
                let mut all = Vec::new();
                for (behind, to) in ends {
                    let following = match after {
                        [] if behind == 1 => vec![Vec::new()],
                        [] => Vec::new(),
                        _ => self.spans_from(after, behind),
                    };
                    let span = Span { from: state, to };
                    all.extend(following.into_iter().map(|mut spans| {
                        spans.insert(0, span.clone());
                        spans
                    }));
                }
                all
            }
            TextField::Number { .. } => Vec::new(),
        }
    }

    /// Returns the states that `self` can reach from `state` by reading a text that `part` accepts.
    fn ends(&mut self, part: &TextAutomaton, state: usize) -> BTreeSet<usize> {
        let whole = Span {
            from: state,
            to: BTreeSet::new(),
        };
        let (_, pairs) = self.product(part, &whole);
        let ends = pairs
            .into_iter()
            .filter(|(node, _)| part.nodes[*node].is_final);
        ends.map(|(_, state)| state).collect()
    }

    /// Returns an automaton for the texts of one part of a series name: those of the values that
    /// lead `self`, the automaton for names, from the state `span.from` to a state in `span.to`.
    fn restricted(&mut self, part: usize, form: &PartForm, span: &Span) -> TextAutomaton {
        if let PartForm::LastTwo(years) = form {
            // Check all four digits of a year, as in a series name. Texts have only the last two.
            let is_within = |year: &String| {
                let end = self.after(span.from, year);
                span.to.contains(&end)
            };
            let years: Vec<_> = years.texts().filter(is_within).collect();
            return TextAutomaton::of_last_two(part, years.into_iter());
        }
        self.product(&TextAutomaton::of_part(part, form), span).0
    }

    /// Returns the product of `part` and `self`: an automaton that reads a text with both. `self`
    /// begins in `span.from`, and accepts a text if it ends in a state of `span.to`. Also returns
    /// the states of `part` and `self` that each node of the product stands for.
    fn product(
        &mut self,
        part: &TextAutomaton,
        span: &Span,
    ) -> (TextAutomaton, Vec<(usize, usize)>) {
        let begin = (part.start, span.from);
        let (mut pairs, mut known) = (vec![begin], HashMap::from([(begin, 0)]));
        let (mut nodes, mut at) = (Vec::new(), 0);
        while let Some((node, state)) = pairs.get(at).copied() {
            let mut edges: Vec<Edge> = Vec::new();
            for edge in &part.nodes[node].edges {
                let own = edges.len();
                for letter in edge.letters.iter() {
                    let next = (edge.to, self.step(state, letter));
                    let to = *known.entry(next).or_insert_with(|| {
                        pairs.push(next);
                        pairs.len() - 1
                    });
                    match edges[own..].iter_mut().find(|edge| edge.to == to) {
                        Some(edge) => edge.letters.ascii |= Letters::one(letter).ascii,
                        None => edges.push(Edge {
                            letters: Letters::one(letter),
                            role: edge.role.clone(),
                            to,
                        }),
                    }
                }
            }
            let is_final = part.nodes[node].is_final && span.to.contains(&state);
            nodes.push(Node { edges, is_final });
            at += 1;
        }
        (TextAutomaton { nodes, start: 0 }, pairs)
    }
}
