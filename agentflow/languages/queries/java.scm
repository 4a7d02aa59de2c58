(method_declaration body: (block) @body)
(constructor_declaration body: (_) @body)
(return_statement (_) @returned)
(lambda_expression body: (expression) @returned)
(if_statement condition: (parenthesized_expression (_) @condition))
(while_statement condition: (parenthesized_expression (_) @loop_condition))
(do_statement condition: (parenthesized_expression (_) @loop_condition))
(for_statement condition: (_) @loop_condition)
(ternary_expression condition: (_) @condition)
(binary_expression) @binary
(unary_expression operator: "!" operand: (_) @negated)
(method_invocation) @call
(argument_list (_) @argument)
(array_initializer (_) @element)
(enum_body (enum_constant) @element)
[(switch_block_statement_group) (switch_rule)] @part
(expression_statement [(method_invocation) (assignment_expression) (update_expression)]) @statement
[(throw_statement) (continue_statement) (break_statement)] @statement
(assignment_expression operator: _ @assigns)
(variable_declarator name: (identifier) @assigned)
(identifier) @name
(for_statement body: (block) @loop)
(enhanced_for_statement body: (block) @loop)
(while_statement body: (block) @loop)
(catch_clause body: (block) @handler_body)
(string_literal) @string
[(decimal_integer_literal) (decimal_floating_point_literal)] @number
[(true) (false)] @boolean
(method_invocation object: (identifier) @_module arguments: (argument_list . (_) @pattern) (#eq? @_module "Pattern"))
(import_declaration) @imported
[(line_comment) (block_comment) (import_declaration) (marker_annotation) (annotation)] @ignored
(throw_statement (object_creation_expression arguments: (argument_list) @words))
(object_creation_expression type: (_) @_error arguments: (argument_list) @words (#match? @_error "(Error|Exception)$"))
(method_invocation object: (_) @_said arguments: (argument_list) @talk (#match? @_said "(?i)^(system\\.err|log(ger)?)$"))
[(line_comment) (block_comment)] @comment
(class_declaration name: (_) @class)
[(superclass) (super_interfaces)] @inherits
[(marker_annotation) (annotation)] @inherits
(for_statement condition: (binary_expression right: (decimal_integer_literal) @bound))
; What changes a list in place: where a caller gave it, only the caller can tell.
(method_invocation object: (identifier) @altered name: (_) @_changes
  (#match? @_changes "^(add\\w*|remove\\w*|set|sort|clear|retainAll|replaceAll)$"))
(method_invocation object: (_) @_on name: (_) @_changes arguments: (argument_list . (identifier) @altered)
  (#eq? @_on "Collections") (#match? @_changes "^(sort|reverse|shuffle|swap|fill)$"))
