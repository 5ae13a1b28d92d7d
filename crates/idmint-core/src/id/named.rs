//! Enums whose variants have names as text.

/// Defines an enum with a method that returns the name of a variant.
///
/// The name follows each variant, after `=`. The method is called `name`, unless `fn METHOD;`
/// before the enum says otherwise.
macro_rules! named {
    (
        fn $method:ident;
        $(#[$attribute:meta])*
        pub enum $enum:ident {
            $($(#[$of_variant:meta])* $variant:ident = $name:literal,)+
        }
    ) => {
        $(#[$attribute])*
        pub enum $enum {
            $($(#[$of_variant])* $variant,)+
        }

        impl $enum {
            /// Returns the name of the variant in definitions and responses. Programs may rely on
            /// the name.
            pub const fn $method(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }
        }
    };
    ($($enum:tt)+) => {
        $crate::id::named::named! { fn name; $($enum)+ }
    };
}

pub(in crate::id) use named;
