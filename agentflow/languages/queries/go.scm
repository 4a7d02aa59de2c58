(function_declaration body: (block) @body)
(method_declaration body: (block) @body)
(func_literal body: (block) @body)
(return_statement (expression_list (_) @returned))
(if_statement condition: (_) @condition)
(for_clause condition: (_) @loop_condition)
(for_statement . (_) @loop_condition . body: (block) (#not-match? @loop_condition "range|;"))
(expression_switch_statement (expression_case) @part)
(expression_switch_statement (default_case) @part)
(type_switch_statement (type_case) @part)
(expression_case value: (expression_list (_) @element))
(binary_expression) @binary
(unary_expression operator: "!" operand: (_) @negated)
(call_expression) @call
(argument_list (_) @argument)
(literal_value [(literal_element) (keyed_element)] @element)
(slice_expression) @wrapped
(slice_expression start: (_) @part)
(slice_expression end: (_) @part)
(expression_statement [(call_expression) (unary_expression)]) @statement
[(assignment_statement) (inc_statement) (dec_statement) (defer_statement) (go_statement) (send_statement)
 (continue_statement) (break_statement)] @statement
(assignment_statement operator: _ @assigns)
(short_var_declaration left: (expression_list . (identifier) @assigned .))
(identifier) @name
(for_statement body: (block) @loop)
[(interpreted_string_literal) (raw_string_literal)] @string
[(int_literal) (float_literal)] @number
[(true) (false)] @boolean
(call_expression function: (_) @_module arguments: (argument_list . (_) @pattern) (#match? @_module "^regexp\\."))
(import_declaration) @imported
[(comment) (import_declaration)] @ignored
(field_declaration tag: (_) @ignored)
(method_declaration name: (_) @_text body: (_) @ignored (#match? @_text "^(Error|GoString)$"))
(call_expression function: (_) @_said (#match? @_said "^(len|cap|make|append|string|bool|byte|rune|u?int\\d*|float\\d+)$")) @conversion
(call_expression function: (_) @_said arguments: (argument_list) @words
  (#match? @_said "^(errors\\.(New|Errorf|Wrapf?)|fmt\\.Errorf|panic)$"))
(call_expression function: (_) @_said arguments: (argument_list) @talk (#match? @_said "^((.*\\.)?log(ger)?|slog|glog)\\."))
((comment) @comment (#not-match? @comment "^//(go:|\\s*\\+build|export|line)|#(cgo|include)"))
; Names that data or interfaces have.
[(method_declaration name: (_) @key) (method_elem name: (_) @key) (field_declaration name: (_) @key)]
(for_clause condition: (binary_expression right: (int_literal) @bound))
(range_clause right: (int_literal) @bound)
; What changes the array of a slice: where a caller gave it, only the caller can tell.
(assignment_statement left: (expression_list (index_expression operand: (identifier) @altered)))
(call_expression function: (_) @_changes arguments: (argument_list . (identifier) @altered)
  (#match? @_changes "^(sort\\.\\w+|slices\\.(Sort\\w*|Reverse|Delete\\w*|Compact\\w*|Insert|Replace))$"))
(call_expression function: (_) @_changes arguments: (argument_list . (slice_expression operand: (identifier) @altered))
  (#match? @_changes "^(append|copy|sort\\.\\w+|slices\\.(Sort\\w*|Reverse))$"))
; What no run of the tests runs.
(function_declaration name: (_) @_timed body: (_) @timed (#match? @_timed "^Benchmark"))
