[(function_declaration name: (identifier) @name) (generator_function_declaration name: (identifier) @name)] @definition
(class_declaration name: (_) @name) @class
(method_definition name: (property_identifier) @name) @definition
(program (lexical_declaration (variable_declarator name: (identifier) @name) @definition) @_text (#not-match? @_text "= *require[(]"))
(program (variable_declaration (variable_declarator name: (identifier) @name) @definition) @_text (#not-match? @_text "= *require[(]"))
(program (export_statement (lexical_declaration (variable_declarator name: (identifier) @name) @definition)))
(assignment_expression left: (member_expression property: (property_identifier) @name) right: [(function_expression) (arrow_function) (class)]) @definition
(pair key: (property_identifier) @name value: [(function_expression) (arrow_function)]) @definition
[(identifier) (property_identifier) (shorthand_property_identifier) (shorthand_property_identifier_pattern)] @use
(import_statement source: (string (string_fragment) @import))
(export_statement source: (string (string_fragment) @import))
(call_expression function: [(identifier) (import)] @_loads arguments: (arguments . (string (string_fragment) @import))
  (#match? @_loads "^(require|import)$"))
(class_body (_ property: (property_identifier) @name) @definition)
