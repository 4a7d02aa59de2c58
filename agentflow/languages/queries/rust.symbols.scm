[(function_item name: (identifier) @name) (function_signature_item name: (identifier) @name)] @definition
[(struct_item name: (_) @name) (enum_item name: (_) @name) (union_item name: (_) @name) (trait_item name: (_) @name)] @class
(mod_item name: (identifier) @name body: (_)) @class
(impl_item) @class
[(type_item name: (_) @name) (const_item name: (_) @name) (static_item name: (_) @name)] @definition
(macro_definition name: (identifier) @name) @definition
[(field_declaration name: (_) @name) (enum_variant name: (_) @name)] @definition
[(identifier) (field_identifier) (type_identifier) (shorthand_field_identifier)] @use
(use_declaration argument: (_) @import)
(mod_item name: (identifier) @import !body)
