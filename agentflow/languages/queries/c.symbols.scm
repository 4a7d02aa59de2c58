(function_definition declarator: (function_declarator declarator: (identifier) @name)) @definition
(function_definition declarator: (pointer_declarator declarator: (function_declarator declarator: (identifier) @name))) @definition
(declaration declarator: (function_declarator declarator: (identifier) @name)) @definition
(declaration declarator: (pointer_declarator declarator: (function_declarator declarator: (identifier) @name))) @definition
[(struct_specifier name: (_) @name body: (_)) (union_specifier name: (_) @name body: (_)) (enum_specifier name: (_) @name body: (_))] @class
(type_definition declarator: (type_identifier) @name) @definition
[(preproc_def name: (identifier) @name) (preproc_function_def name: (identifier) @name)] @definition
(translation_unit (declaration declarator: (init_declarator declarator: (identifier) @name)) @definition)
(enumerator name: (identifier) @name) @definition
(field_declaration declarator: (field_identifier) @name) @definition
[(identifier) (field_identifier) (type_identifier)] @use
(preproc_include path: (_) @import)
