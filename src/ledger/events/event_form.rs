//! Which members an event has, and in which order a checksum covers them.

use crate::id::Rejection;
use crate::ledger::event_error::EventError;

/// The members of events of both forms, and of none twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::ledger) enum Member {
    Name,
    Entities,
    Meta,
    Data,
    Timestamp,
    Id,
    Entity,
    Key,
}

impl Member {
    /// Every member, each at the place of its number.
    const ALL: [Member; 8] = [
        Member::Name,
        Member::Entities,
        Member::Meta,
        Member::Data,
        Member::Timestamp,
        Member::Id,
        Member::Entity,
        Member::Key,
    ];

    /// The number of members.
    pub(super) const COUNT: usize = Member::ALL.len();

    /// The member with that key.
    pub(super) fn of_key(key: &[u8]) -> Option<Member> {
        Member::ALL
            .into_iter()
            .find(|member| member.key().as_bytes() == key)
    }

    /// Its key in the JSON of an event.
    pub(in crate::ledger) const fn key(self) -> &'static str {
        match self {
            Member::Name => "event",
            Member::Entities => "entities",
            Member::Meta => "meta",
            Member::Data => "data",
            Member::Timestamp => "timestamp",
            Member::Id => "eventId",
            Member::Entity => "entity",
            Member::Key => "key",
        }
    }
}

/// A form of events.
///
/// Source: the documentation of Evently, "Event ID", and three events that its authors published in 2021 and 2022.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::ledger) enum EventForm {
    /// An event is about `entities`. The time is part of what names a ledger.
    #[default]
    Entities,
    /// An event is about one `entity`, with a `key`, as until 2022. What names a ledger is the content of its first event
    /// alone, and before that event there is an id with the time 0.
    EntityAndKey,
}

impl EventForm {
    /// Every form.
    pub(in crate::ledger) const ALL: [EventForm; 2] =
        [EventForm::Entities, EventForm::EntityAndKey];

    /// The form of an event with these members.
    ///
    /// # Errors
    /// `missing_field`; `unknown_field` for members of both forms.
    pub(super) fn of(is_there: impl Fn(Member) -> bool) -> Result<EventForm, EventError> {
        let form = match is_there(Member::Entity) || is_there(Member::Key) {
            true => EventForm::EntityAndKey,
            false => EventForm::Entities,
        };
        if let Some(member) = Member::ALL
            .into_iter()
            .find(|member| is_there(*member) && !form.has(*member))
        {
            return Err(unknown_member(member.key(), &[form]));
        }
        match form.required().iter().find(|member| !is_there(**member)) {
            Some(member) => Err(missing_member(*member)),
            None => Ok(form),
        }
    }

    /// The members that are the content, in the order in which a checksum covers them.
    pub(in crate::ledger) const fn content(self) -> &'static [Member] {
        match self {
            EventForm::Entities => &[Member::Name, Member::Entities, Member::Meta, Member::Data],
            EventForm::EntityAndKey => &[
                Member::Entity,
                Member::Key,
                Member::Name,
                Member::Meta,
                Member::Data,
            ],
        }
    }

    /// The members that must be there.
    pub(super) const fn required(self) -> &'static [Member] {
        match self {
            EventForm::Entities => &[Member::Name, Member::Entities],
            EventForm::EntityAndKey => &[Member::Name, Member::Entity, Member::Key],
        }
    }

    /// Whether an event of this form can have the member.
    pub(super) const fn has(self, member: Member) -> bool {
        match member {
            Member::Entities => matches!(self, EventForm::Entities),
            Member::Entity | Member::Key => matches!(self, EventForm::EntityAndKey),
            Member::Name | Member::Meta | Member::Data | Member::Timestamp | Member::Id => true,
        }
    }

    /// The keys of an event of this form, for a message.
    pub(super) fn keys(self) -> String {
        let keys = self
            .content()
            .iter()
            .chain(&[Member::Timestamp, Member::Id])
            .map(|member| member.key());
        keys.collect::<Vec<_>>().join(", ")
    }
}

/// The error for a required member that is absent.
#[cold]
pub(in crate::ledger) fn missing_member(member: Member) -> EventError {
    EventError::new(
        Rejection::MissingField,
        format!("`{}` is missing from the event", member.key()),
    )
}

/// The error for a member that events of these forms do not have.
#[cold]
pub(super) fn unknown_member(key: &str, forms: &[EventForm]) -> EventError {
    let keys: Vec<_> = forms.iter().map(|form| form.keys()).collect();
    let detail = format!(
        "an event has no member `{key}`, only {}",
        keys.join("; or ")
    );
    EventError::new(Rejection::UnknownField, detail)
}
