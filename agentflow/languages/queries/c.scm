(function_definition body: (compound_statement) @body)
(return_statement (_) @returned)
(if_statement condition: (_ (_) @condition))
(while_statement condition: (_ (_) @loop_condition))
(do_statement condition: (_ (_) @loop_condition))
(for_statement condition: (_) @loop_condition)
(conditional_expression condition: (_) @condition)
(binary_expression) @binary
(unary_expression operator: "!" argument: (_) @negated)
(call_expression) @call
(argument_list (_) @argument)
(initializer_list (_) @element)
(case_statement) @part
(expression_statement [(call_expression) (assignment_expression) (update_expression)]) @statement
[(continue_statement) (break_statement) (goto_statement)] @statement
(assignment_expression operator: _ @assigns)
(for_statement body: (compound_statement) @loop)
(while_statement body: (compound_statement) @loop)
(string_literal) @string
(number_literal) @number
[(true) (false)] @boolean
(preproc_include) @imported
[(comment) (preproc_include)] @ignored
(call_expression function: (_) @_said arguments: (argument_list . (_) @_err) @talk
  (#match? @_said "^(fprintf|fputs|fputc)$") (#match? @_err "stderr"))
(call_expression function: (_) @_said arguments: (argument_list) @talk (#match? @_said "^(perror|assert|.*log)$"))
; How much room is taken: too little is not seen by most tests.
(call_expression function: (_) @_takes arguments: (argument_list) @ignored (#match? @_takes "^(malloc|calloc|realloc|alloca)$"))
(comment) @comment
(for_statement condition: (binary_expression right: (number_literal) @bound))
