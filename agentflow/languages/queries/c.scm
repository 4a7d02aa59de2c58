(function_definition body: (compound_statement) @body)
(if_statement condition: (_ (_) @condition))
(while_statement condition: (_ (_) @condition))
(for_statement condition: (_) @condition)
(conditional_expression condition: (_) @condition)
(binary_expression) @binary
(unary_expression operator: "!" argument: (_) @negated)
(call_expression) @call
(argument_list (_) @argument)
(expression_statement [(call_expression) (assignment_expression) (update_expression)]) @statement
(continue_statement) @statement
(break_statement) @statement
(assignment_expression operator: _ @assigns)
(for_statement body: (compound_statement) @loop)
(while_statement body: (compound_statement) @loop)
(string_literal) @string
(number_literal) @number
[(true) (false)] @boolean
(comment) @ignored
(preproc_include) @ignored
(call_expression function: (_) @_said arguments: (argument_list) @talk
  (#match? @_said "^(f?printf|puts|fputs|perror|assert)$"))
