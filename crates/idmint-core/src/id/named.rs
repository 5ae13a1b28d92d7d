//! Enums whose variants have names as text.

/// Defines an enum whose variants have names, with the list of its variants and a method that
/// returns the name of a variant.
///
/// In the macro's input, each variant is followed by `=` and its name. The method is called `name`,
/// unless the input begins with `fn METHOD;`.
#[doc(hidden)]
#[macro_export]
macro_rules! named {
    (
        fn $method:ident;
        $(#[$attribute:meta])*
        $vis:vis enum $enum:ident {
            $($(#[$of_variant:meta])* $variant:ident = $name:literal,)+
        }
    ) => {
        $(#[$attribute])*
        $vis enum $enum {
            $($(#[$of_variant])* $variant,)+
        }

        impl $enum {
            /// All variants, in the order of their declaration.
            $vis const ALL: [Self; [$($name),+].len()] = [$(Self::$variant),+];

            /// Returns the name of the variant, as it appears in configuration files, responses and
            /// metrics. The name is stable, so programs may rely on it.
            $vis const fn $method(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }
        }
    };
    ($($enum:tt)+) => {
        $crate::named! { fn name; $($enum)+ }
    };
}
