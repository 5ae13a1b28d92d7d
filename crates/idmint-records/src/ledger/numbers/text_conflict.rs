//! Searches for a text that stands for two different numbers.

use std::cell::OnceCell;
use std::collections::{HashMap, HashSet, VecDeque};
use std::fmt;

use super::number_check::{CheckRun, NumberCheck};
use super::series_name::LEN_MAX;
use super::text_automaton::{Edge, Role, TextAutomaton};
use super::text_field::{TextField, splits};
use super::text_form::TextForm;

/// The maximum number of states that a search for a conflict between templates visits. Real
/// templates need some hundreds of states. A search that exceeds the maximum is inconclusive, so
/// the templates are refused.
const STATES_MAX: usize = 250_000;

/// The maximum number of steps in a search. A step is a pair of edges that accept the same
/// character. Each step takes about 50 bytes of memory, so a search takes at most about 100 MB.
const STEPS_MAX: usize = 2_000_000;

/// The maximum number of texts, including beginnings of texts, that are compared one by one. They
/// are compared only if the search has no certain result. This happens, for example, if the
/// patterns differ and a template has the parts in another order than the name.
const TEXTS_MAX: usize = 5_000;

/// A text that stands for two different numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextConflict {
    /// The text that stands for both numbers.
    pub text: String,
    /// The two numbers that the text can stand for, each with the name of its series (or its
    /// pattern, if the text does not contain the name). Both numbers can be of the same series.
    pub readings: [(String, u64); 2],
}

impl fmt::Display for TextConflict {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [(one, first), (other, second)] = &self.readings;
        let text = &self.text;
        write!(
            out,
            "{text:?} would be number {first} of {one} and number {second} of {other}"
        )
    }
}

/// The error for a search that gave up after [`STATES_MAX`] states or [`STEPS_MAX`] steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TooComplex;

/// The texts that one template can write for all series whose names match a pattern. Series that
/// match one of the `excluded` patterns are left out.
#[derive(Debug)]
pub(super) struct TextSet<'a> {
    form: &'a TextForm,
    excluded: &'a [Vec<TextField>],
    /// The automaton that accepts the texts without their check characters. It is created when it
    /// is first needed.
    unchecked: OnceCell<TextAutomaton>,
    /// The automaton that accepts the texts with their check characters. It is created when it is
    /// first needed.
    checked: OnceCell<TextAutomaton>,
}

/// Returns a text that stands for two numbers under this template, or `None` if there is none.
pub(super) fn ambiguous(set: &TextSet<'_>) -> Result<Option<TextConflict>, TooComplex> {
    let automaton = set.automaton(None);
    let text = find_text(
        [automaton, automaton],
        [None, None],
        None,
        Difference::SamePath,
    )?;
    Ok(text.and_then(|text| conflict([set, set], &text)))
}

/// Returns a name, if any, that a pattern can split in two ways, such as `xyz` with `{a}{b}`.
pub(super) fn split_twice(name: &[TextField]) -> Result<Option<String>, TooComplex> {
    let automaton = TextAutomaton::of_fields(name);
    find_text(
        [&automaton, &automaton],
        [None, None],
        None,
        Difference::SamePath,
    )
}

/// Returns a name that matches both patterns, or `None` if no such name exists.
pub(super) fn common_name(
    one: &[TextField],
    other: &[TextField],
) -> Result<Option<String>, TooComplex> {
    let [one, other] = [one, other].map(TextAutomaton::of_fields);
    find_text([&one, &other], [None, None], None, Difference::Found)
}

/// Returns a text that both templates can write for different numbers, or `None` if no such text
/// exists. The two sets must have no series in common.
pub(super) fn common_text(sets: [&TextSet<'_>; 2]) -> Result<Option<TextConflict>, TooComplex> {
    let text = search(sets, None)?;
    Ok(text.and_then(|text| conflict(sets, &text)))
}

/// Returns a text that both templates can write for different numbers. Both templates may apply to
/// the same series. Equal texts for the same number of a series are no conflict.
pub(super) fn different_readings(
    sets: [&TextSet<'_>; 2],
) -> Result<Option<TextConflict>, TooComplex> {
    let streams = Streams::of(sets.map(|set| set.form));
    let found = search(sets, streams.as_ref());
    if found == Ok(None) {
        return Ok(None);
    }
    if let Ok(Some(text)) = &found
        && let Some(conflict) = conflict(sets, text)
    {
        return Ok(Some(conflict));
    }
    // The search has no certain result: it gave up, or both templates read the text that it found
    // as the same number of the same series. So try short texts that both templates can write.
    let automata = automata_of(sets, compared_checks(sets));
    let texts = some_texts(automata);
    let conflict = texts.iter().find_map(|text| conflict(sets, text));
    match found {
        Err(error) if conflict.is_none() => Err(error),
        _ => Ok(conflict),
    }
}

fn search(
    sets: [&TextSet<'_>; 2],
    outputs: Option<&[Outputs; 2]>,
) -> Result<Option<String>, TooComplex> {
    let checks = compared_checks(sets);
    let difference = match outputs {
        None => Difference::Found,
        Some(outputs) => Difference::begin(outputs),
    };
    find_text(automata_of(sets, checks), checks, outputs, difference)
}

/// Returns each template's method for check characters, or `None` twice if the methods are equal.
/// The search can then ignore check characters, because equal texts get equal ones.
fn compared_checks(sets: [&TextSet<'_>; 2]) -> [Option<NumberCheck>; 2] {
    let checks = sets.map(|set| set.form.check);
    if checks[0] == checks[1] {
        [None, None]
    } else {
        checks
    }
}

fn automata_of<'a>(
    sets: [&'a TextSet<'_>; 2],
    checks: [Option<NumberCheck>; 2],
) -> [&'a TextAutomaton; 2] {
    [0, 1].map(|side| sets[side].automaton(checks[side]))
}

impl<'a> TextSet<'a> {
    pub(super) fn new(form: &'a TextForm, excluded: &'a [Vec<TextField>]) -> TextSet<'a> {
        TextSet {
            form,
            excluded,
            unchecked: OnceCell::new(),
            checked: OnceCell::new(),
        }
    }

    pub(super) fn form(&self) -> &'a TextForm {
        self.form
    }

    fn automaton(&self, check: Option<NumberCheck>) -> &TextAutomaton {
        let automaton = match check {
            None => &self.unchecked,
            Some(_) => &self.checked,
        };
        automaton.get_or_init(|| {
            TextAutomaton::of_rule(&self.form.fields, &self.form.name, self.excluded, check)
        })
    }

    fn readings(&self, text: &str) -> Vec<(String, u64)> {
        let is_excluded = |series: &str| {
            let mut excluded = self.excluded.iter();
            excluded.any(|pattern| !splits(pattern, series, 1).is_empty())
        };
        let readings = self.form.read(text).into_iter();
        let readings = readings.filter_map(|(series, number)| match series {
            None => Some((format!("any series {}", self.form.pattern), number)),
            Some(series) => (!is_excluded(series.as_str())).then(|| (series.to_string(), number)),
        });
        readings.collect()
    }
}

/// Returns a conflict if the text has two different readings.
fn conflict(sets: [&TextSet<'_>; 2], text: &str) -> Option<TextConflict> {
    // If both templates use the same method for check characters, `text` has none yet (see
    // `compared_checks`), so add them here.
    let check = match sets.map(|set| set.form.check) {
        [Some(one), Some(other)] if one == other => one.of(text),
        _ => String::new(),
    };
    let text = format!("{text}{check}");
    let [ones, others] = sets.map(|set| set.readings(&text));
    let pairs = ones
        .iter()
        .flat_map(|one| others.iter().map(move |other| (one, other)));
    let is_series = |name: &str| !name.starts_with("any series ");
    let mut different = pairs.filter(|(one, other)| one != other || !is_series(&one.0));
    let (one, other) = different.next()?;
    Some(TextConflict {
        readings: [one.clone(), other.clone()],
        text,
    })
}

/// A state of a search: the positions in both automata after they have read the same characters.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct State {
    nodes: [usize; 2],
    checks: [Option<CheckRun>; 2],
    difference: Difference,
}

/// The comparison of two readings (series and number) of a text, up to the last character read.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Difference {
    /// The readings are different.
    Found,
    /// Both readings took the same path through the same automaton.
    SamePath,
    /// The two readings of the text agree so far. One of them may be ahead, for example with `a1`
    /// of the series name where the other reading has only `a`.
    Unknown(Streams),
}

/// The parts of names and numbers that only one of two readings has produced so far.
///
/// For example, if one reading has produced `ac` of a name and the other only `a`, the first one is
/// ahead by `c`, and the other one must produce `c` next.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Streams {
    /// One entry for each part of the series name (or for the whole name), and one for the number.
    /// If reading 0 has `a` of a part so far, and reading 1 has `ac`, the entry is `(1, "c")`.
    ahead: Vec<(usize, String)>,
    /// For each of the two readings of a text, how many entries of [`Outputs::literals`] (fixed
    /// characters such as the `-` of `acme-2026`) its series name has so far.
    part_count: [usize; 2],
    /// For each reading, `true` once its number has a digit other than the ignored leading zeros.
    has_number: [bool; 2],
}

impl Difference {
    /// Returns the difference before the first character.
    fn begin(outputs: &[Outputs; 2]) -> Difference {
        let mut streams = Streams {
            ahead: vec![(0, String::new()); outputs[0].count],
            part_count: [0; 2],
            has_number: [false; 2],
        };
        for (side, output) in outputs.iter().enumerate() {
            for (stream, text) in &output.constants {
                if !streams.push(side, *stream, text) {
                    return Difference::Found;
                }
            }
        }
        Difference::Unknown(streams)
    }

    /// Returns the comparison after the character `letter`, for which each reading takes one edge,
    /// or `None` if one reading is ahead by more characters than a series name can have.
    fn after(
        self,
        outputs: Option<&[Outputs; 2]>,
        letter: char,
        edges: [&Edge; 2],
    ) -> Option<Difference> {
        let (mut streams, outputs) = match (self, outputs) {
            (Difference::SamePath, _) if edges[0].to == edges[1].to => {
                return Some(Difference::SamePath);
            }
            (Difference::Unknown(streams), Some(outputs)) => (streams, outputs),
            _ => return Some(Difference::Found),
        };
        for side in 0..2 {
            if !streams.read(side, &outputs[side], &edges[side].role, letter) {
                return Some(Difference::Found);
            }
        }
        let is_short = streams.ahead.iter().all(|(_, text)| text.len() <= LEN_MAX);
        is_short.then_some(Difference::Unknown(streams))
    }

    /// Returns `true` if a text that ends here has two readings with different series or numbers.
    fn is_found(&self, outputs: Option<&[Outputs; 2]>) -> bool {
        match (self, outputs) {
            (Difference::Unknown(streams), Some(outputs)) => {
                let mut streams = streams.clone();
                let mut sides = (0..2).zip(outputs);
                !sides.all(|(side, outputs)| {
                    streams.push_literals(side, outputs, outputs.literals.len())
                }) || streams.ahead.iter().any(|(_, text)| !text.is_empty())
            }
            (Difference::Found, _) => true,
            _ => false,
        }
    }
}

/// The rules for collecting the characters of a text in streams: one for each part of the series
/// name (or for the whole name), and one for the number. Readings are compared stream by stream.
#[derive(Debug, Clone)]
struct Outputs {
    /// The number of streams: the parts of the name (or the whole name), and the number.
    count: usize,
    /// The indices and values of the name's parts that are not read from the text, because they are
    /// the same for all texts of the template, such as the year `2026`.
    constants: Vec<(usize, String)>,
    /// For each part of the name, its index in [`Streams::ahead`] (0 if whole names are compared).
    streams: Vec<usize>,
    /// The fixed characters of the name before each part and after the last one. They are empty if
    /// names are compared part by part.
    literals: Vec<String>,
}

impl Streams {
    /// Returns how the readings of two forms of texts are converted to streams, in which they can
    /// be compared. Returns `None` if they cannot be compared. Two readings of the same text then
    /// always count as different.
    ///
    /// If one form is for a single series, the parts of its name are compared with the parts of the
    /// other form. If both forms have patterns with the same fields, each part is compared with the
    /// same part. Otherwise the names are compared as a whole, which requires that the texts have
    /// the parts in the order of the name.
    fn of(forms: [&TextForm; 2]) -> Option<[Outputs; 2]> {
        let [one, other] = forms;
        // Two patterns with the same fields match the same names, even if they name the parts
        // differently.
        let is_alike = one.pattern.fields() == other.pattern.fields();
        if is_alike && one.missing_part() == other.missing_part() {
            return Some([Outputs::of_parts(one), Outputs::of_parts(other)]);
        }
        if !one.has_all_parts() || !other.has_all_parts() {
            return None;
        }
        let only = forms.map(|form| form.pattern.only());
        match only {
            [Some(only), _] => Some([Outputs::of_only(only, other)?, Outputs::of_parts(other)]),
            [_, Some(only)] => Some([Outputs::of_parts(one), Outputs::of_only(only, one)?]),
            _ => Some([Outputs::of_name(one)?, Outputs::of_name(other)?]),
        }
    }

    /// Returns `true` if trying one character of these edges is enough, because every one leads to
    /// the same state. Both readings of the text must have the same characters so far, and be
    /// inside the same part of the name, inside the number, or at fixed characters.
    fn agree_at(&self, edges: [&Edge; 2]) -> bool {
        let has_begun = match edges.map(|edge| &edge.role) {
            [Role::Literal, Role::Literal] => true,
            [Role::Part(one), Role::Part(other)] => {
                one == other && self.part_count.iter().all(|count| count > one)
            }
            [Role::Number, Role::Number] => self.has_number == [true; 2],
            _ => false,
        };
        has_begun && self.ahead.iter().all(|(_, text)| text.is_empty())
    }

    /// Adds a character of the text to the reading `side` (0 or 1): to a part of its series name,
    /// to its number, or to neither, as `role` says. Returns `false` if the other reading differs.
    fn read(&mut self, side: usize, outputs: &Outputs, role: &Role, letter: char) -> bool {
        let mut text = [0; 4];
        let (part, value) = match role {
            Role::Literal | Role::Check(_) => return true,
            Role::Number => {
                self.has_number[side] |= letter != '0';
                let letter = letter.encode_utf8(&mut text);
                return !self.has_number[side] || self.push(side, outputs.count - 1, letter);
            }
            Role::Part(part) => (*part, &*letter.encode_utf8(&mut text)),
            Role::Value(part, value) => (*part, value.as_str()),
        };
        self.push_literals(side, outputs, part + 1) && self.push(side, outputs.streams[part], value)
    }

    /// Adds the first `end` entries of [`Outputs::literals`], except those added earlier, to the
    /// name in the reading `side` (0 or 1). Returns `false` if the other reading's name differs.
    fn push_literals(&mut self, side: usize, outputs: &Outputs, end: usize) -> bool {
        let begin = self.part_count[side];
        self.part_count[side] = begin.max(end);
        let mut literals = outputs.literals.iter().take(end).skip(begin);
        literals.all(|literal| self.push(side, 0, literal))
    }

    /// Adds characters to a stream (such as the one for the number) of the reading `side` (0 or 1).
    /// Returns `false` if the other reading has other characters at the same position.
    fn push(&mut self, side: usize, stream: usize, text: &str) -> bool {
        let (leader, ahead) = &mut self.ahead[stream];
        for letter in text.chars() {
            if ahead.is_empty() || *leader == side {
                *leader = side;
                ahead.push(letter);
            } else if ahead.remove(0) != letter {
                return false;
            }
        }
        if ahead.is_empty() {
            *leader = 0;
        }
        true
    }
}

impl Outputs {
    fn of_parts(form: &TextForm) -> Outputs {
        let count = form.pattern.parts().len();
        let mut constants = Vec::new();
        for field in &form.name {
            if let TextField::Part { part, form: values } = field
                && !form.has_part(*part)
            {
                constants.extend(values.only().map(|value| (*part, value.to_owned())));
            }
        }
        Outputs {
            count: count + 1,
            constants,
            streams: (0..count).collect(),
            literals: vec![String::new(); count + 1],
        }
    }

    /// Returns the rules to compare the template of a single series, `only`, with the texts of
    /// `other`. The name `only` is split by the pattern of `other`, so that both have the same
    /// parts. Returns `None` if the pattern does not match the name.
    fn of_only(only: &str, other: &TextForm) -> Option<Outputs> {
        let parts = other.pattern.split(only)?;
        let constants = parts.iter().map(|part| (*part).to_owned()).enumerate();
        Some(Outputs {
            count: parts.len() + 1,
            constants: constants.collect(),
            streams: Vec::new(),
            literals: vec![String::new()],
        })
    }

    /// Returns the rules to compare series names as a whole, not part by part. Returns `None` if
    /// the texts of `form` have the parts in another order than the name.
    fn of_name(form: &TextForm) -> Option<Outputs> {
        let part = |field: &TextField| match field {
            TextField::Part { part, .. } => Some(*part),
            _ => None,
        };
        let parts: Vec<_> = form.fields.iter().filter_map(part).collect();
        let mut literals = vec![String::new()];
        for field in &form.name {
            let last = literals.last_mut()?;
            match field {
                TextField::Literal(literal) => last.push_str(literal),
                TextField::Part { part, form: values } if !form.has_part(*part) => {
                    literals.push(values.only()?.to_owned());
                }
                _ => literals.push(String::new()),
            }
        }
        parts.is_sorted().then(|| Outputs {
            count: 2,
            constants: Vec::new(),
            streams: vec![0; form.pattern.parts().len()],
            literals,
        })
    }
}

/// Returns a text that both automata accept, and that can be read in two different ways, one for
/// each automaton. Returns `None` if no such text exists.
fn find_text(
    automata: [&TextAutomaton; 2],
    checks: [Option<NumberCheck>; 2],
    outputs: Option<&[Outputs; 2]>,
    difference: Difference,
) -> Result<Option<String>, TooComplex> {
    let runs = checks.map(|check| match check {
        None => vec![None],
        Some(check) => CheckRun::beginnings(check).into_iter().map(Some).collect(),
    });
    let begin = |checks| State {
        nodes: automata.map(|automaton| automaton.start),
        checks,
        difference: difference.clone(),
    };
    let live = live_pairs(automata)?;
    let pairs = runs[0]
        .iter()
        .flat_map(|one| runs[1].iter().map(|other| [*one, *other]));
    let mut search = Search::default();
    pairs.for_each(|checks| search.add(begin(checks), None));
    let has_checks = checks.iter().any(Option::is_some);
    while let Some(at) = search.next() {
        let state = search.visited[at].0.clone();
        let nodes = [0, 1].map(|side| &automata[side].nodes[state.nodes[side]]);
        if nodes.iter().all(|node| node.is_final) && state.difference.is_found(outputs) {
            return Ok(Some(search.text(at)));
        }
        if search.visited.len() > STATES_MAX {
            return Err(TooComplex);
        }
        for one in &nodes[0].edges {
            for other in &nodes[1].edges {
                let edges = [one, other];
                if !live.contains(&[one.to, other.to]) {
                    continue;
                }
                // If all characters that both edges accept have the same effect on the search, it
                // is enough to try one of them.
                let is_any = !has_checks
                    && match &state.difference {
                        Difference::Unknown(streams) => streams.agree_at(edges),
                        Difference::Found | Difference::SamePath => true,
                    };
                let letters = one.letters.and(other.letters).iter();
                for letter in letters.take(if is_any { 1 } else { usize::MAX }) {
                    if let Some(next) = state.after(edges, letter, outputs) {
                        search.add(next, Some((at, letter)));
                    }
                }
            }
        }
    }
    Ok(None)
}

/// Returns short texts that both automata accept, at most [`TEXTS_MAX`] of them. At most two
/// characters are tried for each step, because two are enough to make parts of names differ.
///
/// Returns no texts if the automata are too complex. In this case, every other search of these
/// automata fails as well.
fn some_texts(automata: [&TextAutomaton; 2]) -> Vec<String> {
    let Ok(live) = live_pairs(automata) else {
        return Vec::new();
    };
    let begin = (automata.map(|automaton| automaton.start), String::new());
    let (mut queue, mut texts, mut count) = (VecDeque::from([begin]), Vec::new(), 0);
    while let Some(([one, other], text)) = queue.pop_front() {
        let nodes = [&automata[0].nodes[one], &automata[1].nodes[other]];
        if nodes.iter().all(|node| node.is_final) {
            texts.push(text.clone());
        }
        for one in &nodes[0].edges {
            for other in &nodes[1].edges {
                let next = [one.to, other.to];
                let letters = one.letters.and(other.letters).iter();
                for letter in letters.take(2).filter(|_| live.contains(&next)) {
                    count += 1;
                    if count > TEXTS_MAX {
                        break;
                    }
                    queue.push_back((next, format!("{text}{letter}")));
                }
            }
        }
    }
    texts
}

/// Returns the pairs of nodes from which both automata can reach the end of a common text. A search
/// need not visit any other pair.
///
/// # Errors
/// Returns [`TooComplex`] if more than [`STEPS_MAX`] pairs of edges accept the same character.
fn live_pairs(automata: [&TextAutomaton; 2]) -> Result<HashSet<[usize; 2]>, TooComplex> {
    let begin = automata.map(|automaton| automaton.start);
    let (mut pairs, mut known) = (vec![begin], HashSet::from([begin]));
    let (mut steps, mut live, mut at) = (HashMap::<_, Vec<_>>::new(), Vec::new(), 0);
    let mut step_count = 0;
    while let Some(pair) = pairs.get(at).copied() {
        let nodes = [0, 1].map(|side| &automata[side].nodes[pair[side]]);
        if nodes.iter().all(|node| node.is_final) {
            live.push(pair);
        }
        for one in &nodes[0].edges {
            for other in &nodes[1].edges {
                if one.letters.and(other.letters).iter().next().is_some() {
                    step_count += 1;
                    if step_count > STEPS_MAX {
                        return Err(TooComplex);
                    }
                    let next = [one.to, other.to];
                    steps.entry(next).or_default().push(pair);
                    if known.insert(next) {
                        pairs.push(next);
                    }
                }
            }
        }
        at += 1;
    }
    let mut found: HashSet<_> = live.iter().copied().collect();
    while let Some(pair) = live.pop() {
        let before = steps.get(&pair).into_iter().flatten();
        live.extend(before.filter(|before| found.insert(**before)));
    }
    Ok(found)
}

impl State {
    /// Returns the next state, after both automata have read the character `letter`. Returns `None`
    /// if `letter` is a wrong check character, or if a series name would become too long.
    fn after(
        &self,
        edges: [&Edge; 2],
        letter: char,
        outputs: Option<&[Outputs; 2]>,
    ) -> Option<State> {
        let mut checks = self.checks;
        for (run, edge) in checks.iter_mut().zip(edges) {
            match (&edge.role, &run) {
                (Role::Check(position), Some(check)) if !check.has(*position, letter) => {
                    return None;
                }
                (Role::Check(_), _) | (_, None) => {}
                (_, Some(check)) => *run = Some(check.after(letter)),
            }
        }
        Some(State {
            nodes: edges.map(|edge| edge.to),
            checks,
            difference: self.difference.clone().after(outputs, letter, edges)?,
        })
    }
}

/// The visited states of a search, each with the state before it and the character between them.
///
/// The search is breadth-first, and alternates between the states with a difference and all other
/// states. Otherwise it could visit [`STATES_MAX`] other states before it follows the states with a
/// difference, which are few.
#[derive(Default)]
struct Search {
    visited: Vec<(State, Option<(usize, char)>)>,
    known: HashSet<State>,
    /// A queue of states, as indices into `visited`, in which the two readings already differ.
    different: VecDeque<usize>,
    /// A queue of states, as indices into `visited`, in which the two readings may still be equal.
    others: VecDeque<usize>,
    /// `true` if the last call of `next` preferred a state without a difference (from `others`).
    /// The next call then prefers a state with a difference (from `different`).
    is_others_turn: bool,
}

impl Search {
    fn add(&mut self, state: State, before: Option<(usize, char)>) {
        if self.known.insert(state.clone()) {
            let queue = match state.difference {
                Difference::Found => &mut self.different,
                Difference::SamePath | Difference::Unknown(_) => &mut self.others,
            };
            queue.push_back(self.visited.len());
            self.visited.push((state, before));
        }
    }

    /// Returns the state to visit next.
    fn next(&mut self) -> Option<usize> {
        self.is_others_turn = !self.is_others_turn;
        let (first, second) = match self.is_others_turn {
            true => (&mut self.others, &mut self.different),
            false => (&mut self.different, &mut self.others),
        };
        first.pop_front().or_else(|| second.pop_front())
    }

    fn text(&self, mut at: usize) -> String {
        let mut letters = Vec::new();
        while let Some((before, letter)) = self.visited[at].1 {
            letters.push(letter);
            at = before;
        }
        letters.into_iter().rev().collect()
    }
}
