; What operators change. A node within one that is captured as @ignored is left alone.
(function_definition body: (block) @body)
(if_statement condition: (_) @condition)
(elif_clause condition: (_) @condition)
(while_statement condition: (_) @condition)
(conditional_expression (_) . "if" . (_) @condition)
(if_clause (_) @condition)
(comparison_operator) @binary
(boolean_operator) @binary
(binary_operator) @binary
(not_operator argument: (_) @negated)
(call) @call
(argument_list (_) @argument)
(expression_statement [(call) (await) (assignment) (augmented_assignment) (yield)]) @statement
(raise_statement) @statement
(delete_statement) @statement
(continue_statement) @statement
(break_statement) @statement
(augmented_assignment operator: _ @assigns)
(for_statement body: (block) @loop)
(while_statement body: (block) @loop)
(except_clause) @handler
(string) @string
[(integer) (float)] @number
[(true) (false)] @boolean
(comment) @ignored
(type) @ignored
(expression_statement . (string) .) @ignored
(assignment left: (identifier) @_all (#eq? @_all "__all__")) @ignored
(assert_statement) @ignored
(raise_statement (call arguments: (argument_list) @words))
(call function: (_) @_said arguments: (argument_list) @talk
  (#match? @_said "^(print|warn|.*log(ger|ging)?)(\\.|$)"))
(keyword_argument name: (identifier) @_help value: (_) @words (#match? @_help "^(help|description|epilog|metavar)$"))
