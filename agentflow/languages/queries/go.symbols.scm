(function_declaration name: (identifier) @name) @definition
(method_declaration name: (field_identifier) @name) @definition
(type_spec name: (type_identifier) @name) @class
(type_alias name: (type_identifier) @name) @definition
(source_file (const_declaration (const_spec name: (identifier) @name) @definition))
(source_file (var_declaration (var_spec name: (identifier) @name) @definition))
(source_file (var_declaration (var_spec_list (var_spec name: (identifier) @name) @definition)))
(field_declaration name: (field_identifier) @name) @definition
(method_elem name: (field_identifier) @name) @definition
[(identifier) (field_identifier) (type_identifier) (package_identifier)] @use
(import_spec path: (_) @import)
