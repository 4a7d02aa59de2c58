(function_declaration body: (block) @body)
(method_declaration body: (block) @body)
(if_statement condition: (_) @condition)
(for_clause condition: (_) @condition)
(binary_expression) @binary
(unary_expression operator: "!" operand: (_) @negated)
(call_expression) @call
(argument_list (_) @argument)
(expression_statement (call_expression)) @statement
(assignment_statement) @statement
(inc_statement) @statement
(dec_statement) @statement
(defer_statement) @statement
(continue_statement) @statement
(break_statement) @statement
(for_statement body: (block) @loop)
[(interpreted_string_literal) (raw_string_literal)] @string
[(int_literal) (float_literal)] @number
[(true) (false)] @boolean
(comment) @ignored
(import_declaration) @ignored
(field_declaration tag: (_) @ignored)
(call_expression function: (_) @_said arguments: (argument_list) @words
  (#match? @_said "^(errors\\.New|fmt\\.Errorf|panic)$"))
(call_expression function: (_) @_said arguments: (argument_list) @talk
  (#match? @_said "^(fmt\\.(Print.*|Fprint.*)|log\\..*)$"))
