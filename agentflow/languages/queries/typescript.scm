; What TypeScript has beside JavaScript.
[(type_annotation) (type_arguments) (type_alias_declaration) (interface_declaration) (ambient_declaration)] @ignored
[(type_annotation) (type_arguments)] @annotation
[(type_alias_declaration) (interface_declaration)] @described
[(as_expression) (satisfies_expression) (non_null_expression)] @conversion
(required_parameter value: (_) @default)
(optional_parameter value: (_) @default)
(enum_body [(enum_assignment) (property_identifier)] @element)
(public_field_definition value: (_)) @part
[(property_signature name: (_) @key) (method_signature name: (_) @key) (public_field_definition name: (_) @key)]
; What no value can reach.
((switch_default) @ignored (#match? @ignored ":\\s*never\\b|assertNever"))
