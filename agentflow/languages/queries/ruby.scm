(method body: (body_statement) @body)
(singleton_method body: (body_statement) @body)
(if condition: (_) @condition)
(elsif condition: (_) @condition)
(unless condition: (_) @condition)
(if_modifier condition: (_) @condition)
(unless_modifier condition: (_) @condition)
(while condition: (_) @condition)
(conditional condition: (_) @condition)
(binary) @binary
(unary operator: "!" operand: (_) @negated)
(call) @call
(argument_list (_) @argument)
(body_statement [(call) (assignment) (operator_assignment)] @statement)
(then [(call) (assignment) (operator_assignment)] @statement)
(operator_assignment operator: _ @assigns)
(string) @string
[(integer) (float)] @number
[(true) (false)] @boolean
(comment) @ignored
(call method: (identifier) @_said arguments: (argument_list) @words (#match? @_said "^raise$"))
(call method: (identifier) @_said arguments: (argument_list) @talk (#match? @_said "^(puts|print|warn|require.*)$"))
