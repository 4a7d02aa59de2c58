(method_declaration body: (block) @body)
(constructor_declaration body: (_) @body)
(if_statement condition: (parenthesized_expression (_) @condition))
(while_statement condition: (parenthesized_expression (_) @condition))
(do_statement condition: (parenthesized_expression (_) @condition))
(for_statement condition: (_) @condition)
(ternary_expression condition: (_) @condition)
(binary_expression) @binary
(unary_expression operator: "!" operand: (_) @negated)
(method_invocation) @call
(argument_list (_) @argument)
(expression_statement [(method_invocation) (assignment_expression) (update_expression)]) @statement
(throw_statement) @statement
(continue_statement) @statement
(break_statement) @statement
(assignment_expression operator: _ @assigns)
(for_statement body: (block) @loop)
(enhanced_for_statement body: (block) @loop)
(while_statement body: (block) @loop)
(string_literal) @string
[(decimal_integer_literal) (decimal_floating_point_literal)] @number
[(true) (false)] @boolean
[(line_comment) (block_comment)] @ignored
(import_declaration) @ignored
[(marker_annotation) (annotation)] @ignored
(throw_statement (object_creation_expression arguments: (argument_list) @words))
(method_invocation object: (_) @_said arguments: (argument_list) @talk (#match? @_said "(?i)^(system\\.(out|err)|log(ger)?)$"))
