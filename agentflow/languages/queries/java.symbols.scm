[(method_declaration name: (_) @name) (constructor_declaration name: (_) @name)] @definition
[(class_declaration name: (_) @name) (interface_declaration name: (_) @name) (enum_declaration name: (_) @name)
 (record_declaration name: (_) @name) (annotation_type_declaration name: (_) @name)] @class
(field_declaration declarator: (variable_declarator name: (identifier) @name)) @definition
(enum_constant name: (identifier) @name) @definition
[(identifier) (type_identifier)] @use
(import_declaration (scoped_identifier) @import)
