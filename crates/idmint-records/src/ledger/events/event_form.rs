//! The two forms of events of the service Evently: with `entities`, and earlier with `entity` and
//! `key`. The form determines an event's members, and their order in the checksum.

use crate::ledger::event_error::EventError;
use idmint_core::id::Rejection;
use idmint_core::named;

named! {
    fn key;
    /// A member of an event's JSON object. An event has either `entities`, or `entity` and `key`.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(in crate::ledger) enum Member {
        Name = "event",
        Entities = "entities",
        Meta = "meta",
        Data = "data",
        Timestamp = "timestamp",
        Id = "eventId",
        Entity = "entity",
        Key = "key",
    }
}

impl Member {
    /// The number of members in both forms together.
    pub(super) const COUNT: usize = Member::ALL.len();

    /// Returns the member with this key, or `None` if no event can have such a member.
    pub(super) fn of_key(key: &[u8]) -> Option<Member> {
        Member::ALL
            .into_iter()
            .find(|member| member.key().as_bytes() == key)
    }
}

/// The form of an event's JSON object: with the member `entities`, or with `entity` and `key`.
///
/// Source: the documentation of Evently, an event service, section "Event ID", and three events
/// that its authors published in 2021 and 2022.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::ledger) enum EventForm {
    /// The current form of an event, with the member `entities`. The id of its ledger depends on
    /// the time of the ledger's first event.
    #[default]
    Entities,
    /// The earlier form of an event, with the members `entity` and `key`, as Evently recorded until
    /// 2022. The id of its ledger depends only on the content of the ledger's first event. This
    /// first event has no previous event. The id that stands for the missing one has the time 0.
    EntityAndKey,
}

impl EventForm {
    /// All forms of events.
    pub(in crate::ledger) const ALL: [EventForm; 2] =
        [EventForm::Entities, EventForm::EntityAndKey];

    /// Determines whether an event has the form with `entities`, or with `entity` and `key`.
    ///
    /// # Errors
    /// Returns `missing_field` if a required member is absent. Returns `unknown_field` if the event
    /// has members of both forms.
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

    /// Returns the members that a checksum covers, in order.
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

    /// Returns the members that an event of this form must have.
    pub(super) const fn required(self) -> &'static [Member] {
        match self {
            EventForm::Entities => &[Member::Name, Member::Entities],
            EventForm::EntityAndKey => &[Member::Name, Member::Entity, Member::Key],
        }
    }

    /// Returns `true` if the JSON object of an event of this form can have this member.
    pub(super) const fn has(self, member: Member) -> bool {
        match member {
            Member::Entities => matches!(self, EventForm::Entities),
            Member::Entity | Member::Key => matches!(self, EventForm::EntityAndKey),
            Member::Name | Member::Meta | Member::Data | Member::Timestamp | Member::Id => true,
        }
    }

    /// Returns the keys that an event of this form can have, as a list for an error message.
    pub(super) fn keys(self) -> String {
        let keys = self
            .content()
            .iter()
            .chain(&[Member::Timestamp, Member::Id])
            .map(|member| member.key());
        keys.collect::<Vec<_>>().join(", ")
    }
}

/// Returns the error for an event without a required member.
#[cold]
pub(in crate::ledger) fn missing_member(member: Member) -> EventError {
    EventError::new(
        Rejection::MissingField,
        format!("`{}` is missing from the event", member.key()),
    )
}

/// Returns the error for a member that is not permitted in any of the forms of events in `forms`.
#[cold]
pub(super) fn unknown_member(key: &str, forms: &[EventForm]) -> EventError {
    let keys: Vec<_> = forms.iter().map(|form| form.keys()).collect();
    let detail = format!(
        "an event cannot have the member `{key}`, but only {}",
        keys.join("; or ")
    );
    EventError::new(Rejection::UnknownField, detail)
}
