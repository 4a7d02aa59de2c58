; What TypeScript has beside JavaScript.
(type_annotation) @ignored
(type_arguments) @ignored
(type_alias_declaration) @ignored
(interface_declaration) @ignored
