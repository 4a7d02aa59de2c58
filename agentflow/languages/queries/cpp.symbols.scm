; What C++ has beside C.
[(class_specifier name: (_) @name body: (_)) (namespace_definition name: (_) @name)] @class
(function_definition declarator: (function_declarator declarator: [(field_identifier) (destructor_name) (operator_name)] @name)) @definition
(function_definition declarator: (function_declarator declarator: (qualified_identifier name: (identifier) @name))) @definition
(function_definition declarator: (pointer_declarator declarator: (function_declarator declarator: (field_identifier) @name))) @definition
(function_definition declarator: (reference_declarator (function_declarator declarator: (field_identifier) @name))) @definition
(field_declaration declarator: (function_declarator declarator: (field_identifier) @name)) @definition
(alias_declaration name: (type_identifier) @name) @definition
(namespace_identifier) @use
