(function_item body: (block) @body)
(return_expression (_) @returned)
(function_item return_type: (_) body: (block (_) @returned . "}"))
(closure_expression body: (_) @returned)
(call_expression function: (identifier) @_said arguments: (arguments (_) @returned) (#match? @_said "^(Ok|Some)$"))
((if_expression condition: (_) @condition) (#not-match? @condition "\\blet "))
((while_expression condition: (_) @loop_condition) (#not-match? @loop_condition "\\blet "))
(match_arm pattern: (match_pattern condition: (_) @condition))
(match_arm) @part
(binary_expression) @binary
(type_cast_expression) @bare
(unary_expression "!" (_) @negated)
(call_expression) @call
(arguments (_) @argument)
(array_expression (_) @element)
(struct_expression body: (field_initializer_list [(field_initializer) (shorthand_field_initializer)] @element))
(enum_variant_list (enum_variant) @element)
(or_pattern (_) @element)
(try_expression) @wrapped
(await_expression) @wrapped
(range_expression . (_) @part . "..")
(range_expression ".." . (_) @part)
(expression_statement
  [(call_expression) (assignment_expression) (compound_assignment_expr) (try_expression) (macro_invocation)
   (continue_expression) (break_expression)]) @statement
(compound_assignment_expr operator: _ @assigns)
(let_declaration pattern: (identifier) @assigned)
(identifier) @name
(for_expression body: (block) @loop)
(while_expression body: (block) @loop)
(loop_expression body: (block) @loop)
[(string_literal) (raw_string_literal)] @string
[(integer_literal) (float_literal)] @number
(boolean_literal) @boolean
(call_expression function: (_) @_module arguments: (arguments . (_) @pattern) (#match? @_module "Regex(Builder)?::new$"))
(use_declaration) @imported
[(line_comment) (block_comment) (attribute_item) (inner_attribute_item) (use_declaration) (type_arguments)] @ignored
(mod_item name: (_) @_tests body: (_) @ignored (#match? @_tests "^tests?$"))
(impl_item trait: (_) @_text body: (_) @ignored (#match? @_text "(^|::)(Debug|Error)$"))
(call_expression function: (identifier) @conversion (#match? @conversion "^(Some|Ok|Err|Box)$"))
(call_expression function: (_) @_said (#match? @_said "^(Some|Ok|Err|Box::new|Rc::new|Arc::new|Vec::\\w+|String::\\w+)$|\\.(clone|into|to_string|to_owned|to_vec|iter|into_iter|collect|as_\\w+|unwrap|borrow|cloned|copied|expect)(::<.*>)?$")) @conversion
(call_expression function: (field_expression field: (_) @_said) arguments: (arguments) @words
  (#match? @_said "^(expect|map_err|ok_or|ok_or_else|(with_)?context)$"))
(call_expression function: (identifier) @_said arguments: (arguments (macro_invocation macro: (identifier) @_text (token_tree) @words))
  (#eq? @_said "Err") (#eq? @_text "format"))
(expression_statement (macro_invocation macro: (_) @_said) @talk
  (#match? @_said "^((log::|tracing::)?(debug|info|warn|error|trace)|eprintln?|dbg|(debug_)?assert(_eq|_ne)?|unreachable|unimplemented|todo|panic)$"))
(macro_invocation macro: (identifier) @_said (token_tree) @words
  (#match? @_said "^(panic|e?println?|debug|info|warn|error|unreachable|unimplemented|todo|(debug_)?assert(_eq|_ne)?)$"))
; assert_eq, and what a product or a crate names like it
(macro_invocation macro: (_) @_said (token_tree) @compared (#match? @_said "eq$"))
[(line_comment) (block_comment)] @comment
(field_declaration name: (_) @key)
(impl_item trait: (_) @inherits)
[(struct_item name: (_) @class) (enum_item name: (_) @class) (trait_item name: (_) @class)]
((attribute_item) @_test . (function_item) @ignored (#match? @_test "\\btest\\b"))
(for_expression value: (range_expression (integer_literal) @bound .))
