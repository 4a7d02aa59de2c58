(function_declaration body: (statement_block) @body)
(function_expression body: (statement_block) @body)
(method_definition body: (statement_block) @body)
(arrow_function body: (statement_block) @body)
(if_statement condition: (parenthesized_expression (_) @condition))
(while_statement condition: (parenthesized_expression (_) @condition))
(do_statement condition: (parenthesized_expression (_) @condition))
(for_statement condition: (_) @condition)
(ternary_expression condition: (_) @condition)
(binary_expression) @binary
(unary_expression operator: "!" argument: (_) @negated)
(call_expression) @call
(arguments (_) @argument)
(expression_statement
  [(call_expression) (await_expression) (assignment_expression) (augmented_assignment_expression) (update_expression)
   (yield_expression)]) @statement
(throw_statement) @statement
(continue_statement) @statement
(break_statement) @statement
(augmented_assignment_expression operator: _ @assigns)
(for_statement body: (statement_block) @loop)
(for_in_statement body: (statement_block) @loop)
(while_statement body: (statement_block) @loop)
(catch_clause body: (statement_block) @handler_body)
(spread_element) @part
[(string) (template_string)] @string
(number) @number
[(true) (false)] @boolean
(comment) @ignored
(import_statement) @ignored
(throw_statement (new_expression arguments: (arguments) @words))
(call_expression function: (_) @_said arguments: (arguments) @talk (#match? @_said "^(console|.*log(ger)?)\\."))
