; What TypeScript has beside JavaScript.
[(interface_declaration name: (_) @name) (enum_declaration name: (_) @name) (abstract_class_declaration name: (_) @name)
 (internal_module name: (_) @name)] @class
(type_alias_declaration name: (_) @name) @definition
(function_signature name: (identifier) @name) @definition
[(method_signature name: (property_identifier) @name) (property_signature name: (property_identifier) @name)
 (abstract_method_signature name: (property_identifier) @name)
 (public_field_definition name: (property_identifier) @name)] @definition
(type_identifier) @use
