//! Enums whose variants have names as text.

/// Defines an enum with a method that returns the name of a variant.
///
/// In the macro's input, each variant is followed by `=` and its name. The method is called `name`,
/// unless the input begins with `fn METHOD;`.
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
            /// Returns the name of the variant, as it appears in configuration files and responses.
            /// The name is stable, so programs may rely on it.
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
