(function_item body: (block) @body)
(if_expression condition: (_) @condition)
(while_expression condition: (_) @condition)
(match_arm pattern: (match_pattern condition: (_) @condition))
(binary_expression) @binary
(unary_expression "!" (_) @negated)
(call_expression) @call
(arguments (_) @argument)
(expression_statement [(call_expression) (assignment_expression) (compound_assignment_expr) (try_expression)]) @statement
(expression_statement (macro_invocation)) @ignored
(compound_assignment_expr operator: _ @assigns)
(for_expression body: (block) @loop)
(while_expression body: (block) @loop)
[(string_literal) (raw_string_literal)] @string
[(integer_literal) (float_literal)] @number
(boolean_literal) @boolean
[(line_comment) (block_comment)] @ignored
(attribute_item) @ignored
(use_declaration) @ignored
(type_arguments) @ignored
(macro_invocation macro: (identifier) @_said (token_tree) @words
  (#match? @_said "^(panic|print|println|eprintln|write|writeln|format|debug|info|warn|error|unreachable|assert.*)$"))
