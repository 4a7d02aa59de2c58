(function_definition body: (compound_statement) @body)
(if_statement condition: (_) @condition)
(elif_clause . "elif" . (_) @condition)
(while_statement condition: (_) @loop_condition)
[(binary_expression) (list)] @binary
(command argument: (_) @argument)
(command argument: [(simple_expansion) (expansion)] @bare)
(for_statement value: (simple_expansion) @bare)
(array (_) @element)
(case_item) @part
(pipeline "|" . (_) @element)
(pipeline "|" (_) @element .)
[(program (command) @statement) (if_statement (command) @statement) (elif_clause (command) @statement)]
[(else_clause (command) @statement) (compound_statement (command) @statement) (do_group (command) @statement)]
(redirected_statement body: (command)) @statement
(variable_assignment value: (_)) @statement
[(string) (raw_string)] @string
(number) @number
(comment) @ignored
(expansion (variable_name) (_) @default)
((comment) @comment (#not-match? @comment "^#!"))
((redirected_statement) @talk (#match? @talk "^(echo|printf)\\b.*>&2"))
(command name: (_) @_said . argument: (_) @ignored (#eq? @_said "printf"))
(command name: (command_name (word) @_runs) (#eq? @_runs "eval")) @evaluated
