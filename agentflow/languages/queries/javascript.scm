[(function_declaration body: (_) @body) (function_expression body: (_) @body) (generator_function_declaration body: (_) @body)]
[(method_definition body: (_) @body) (arrow_function body: (statement_block) @body)]
(return_statement (_) @returned)
(arrow_function body: (expression) @returned)
(if_statement condition: (parenthesized_expression (_) @condition))
(while_statement condition: (parenthesized_expression (_) @loop_condition))
(do_statement condition: (parenthesized_expression (_) @loop_condition))
(for_statement condition: (_) @loop_condition)
(ternary_expression condition: (_) @condition)
(binary_expression) @binary
(unary_expression operator: "!" argument: (_) @negated)
(call_expression) @call
(arguments (_) @argument)
(array (_) @element)
(object [(pair) (shorthand_property_identifier) (spread_element) (method_definition)] @element)
(object (spread_element) @spread)
(assignment_pattern right: (_) @default)
(object_assignment_pattern right: (_) @default)
[(template_substitution) (switch_case) (switch_default) (decorator)] @part
(await_expression) @wrapped
(expression_statement
  [(call_expression) (await_expression) (assignment_expression) (augmented_assignment_expression) (update_expression)
   (yield_expression) (unary_expression)]) @statement
[(throw_statement) (continue_statement) (break_statement)] @statement
(augmented_assignment_expression operator: _ @assigns)
(variable_declarator name: (identifier) @assigned)
(identifier) @name
(for_statement body: (statement_block) @loop)
(for_in_statement body: (statement_block) @loop)
(while_statement body: (statement_block) @loop)
(catch_clause body: (statement_block) @handler_body)
[(string) (template_string)] @string
(number) @number
[(true) (false)] @boolean
(regex) @pattern
(import_statement) @imported
(variable_declarator value: (call_expression function: (identifier) @_load (#eq? @_load "require"))) @imported
(variable_declarator value: (call_expression function: (identifier) @_load (#eq? @_load "require"))) @ignored
[(comment) (import_statement)] @ignored
(expression_statement . (string) .) @ignored
(call_expression function: (_) @_said (#match? @_said "^(String|Array\\.from|Boolean|Number|Object\\.freeze|require)$")) @conversion
(throw_statement (new_expression arguments: (arguments) @words))
(new_expression constructor: (_) @_error arguments: (arguments) @words (#match? @_error "(Error|Exception)$"))
(try_statement body: (statement_block (return_statement (call_expression) @unawaited)))
(throw_statement (call_expression arguments: (arguments) @words))
(call_expression function: (_) @_said arguments: (arguments) @talk
  (#match? @_said "^(console\\.(debug|error|info|trace|warn)|debug|(.*\\.)?log(ger)?\\.\\w+)$"))
((comment) @comment (#not-match? @comment "^#!|[@#](jsx|__PURE__)|@ts-|<reference|^/\\*\\s*@flow"))
; Names that data has, and what something from outside may know by its name.
[(shorthand_property_identifier) (shorthand_property_identifier_pattern)] @key
(pair key: (property_identifier) @key)
(method_definition name: (_) @key)
(assignment_expression left: (_) @_out right: (object) @listed (#match? @_out "^(module\\.)?exports$"))
(class_declaration name: (_) @class)
(class_heritage) @inherits
(decorator) @inherits
((string) @ignored (#match? @ignored "^.utf-?8.$"))
(for_statement condition: (binary_expression right: (number) @bound))
(while_statement condition: (parenthesized_expression (binary_expression right: (number) @bound)))
; Code in texts.
(call_expression function: (identifier) @_runs (#eq? @_runs "eval")) @evaluated
(new_expression constructor: (identifier) @_runs (#eq? @_runs "Function")) @evaluated
; What changes an array in place: where a caller gave it, only the caller can tell.
(call_expression function: (member_expression object: (identifier) @altered property: (_) @_changes)
  (#match? @_changes "^(push|pop|shift|unshift|splice|sort|reverse|fill|copyWithin)$"))
