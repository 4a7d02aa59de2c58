; What C++ has beside C.
(lambda_expression body: (_) @body)
(for_range_loop body: (compound_statement) @loop)
(catch_clause body: (compound_statement) @handler_body)
(optional_parameter_declaration default_value: (_) @default)
(throw_statement) @statement
(throw_statement (call_expression arguments: (argument_list) @words))
(field_initializer_list (field_initializer) @element)
(raw_string_literal) @string
(class_specifier name: (_) @class)
(base_class_clause) @inherits
