; What operators change. A node within one that is captured as @ignored, @words or @talk is left alone.
(function_definition body: (block) @body)
(return_statement (_) @returned)
(lambda body: (_) @returned)
(if_statement condition: (_) @condition)
(elif_clause condition: (_) @condition)
(while_statement condition: (_) @loop_condition)
(conditional_expression (_) . "if" . (_) @condition)
(if_clause (_) @condition)
[(comparison_operator) (boolean_operator) (binary_operator)] @binary
(not_operator argument: (_) @negated)
(call) @call
(argument_list (_) @argument)
[(list (_) @element) (set (_) @element) (tuple (_) @element) (dictionary (_) @element)]
(dictionary (dictionary_splat) @spread)
(default_parameter value: (_) @default)
(typed_default_parameter value: (_) @default)
(interpolation) @part
(decorator) @part
(case_clause) @part
(union_pattern (_) @element)
(slice [(_) @part])
(subscript subscript: (slice)) @wrapped
(await) @wrapped
(expression_statement [(call) (await) (assignment right: (_)) (augmented_assignment) (yield)]) @statement
[(raise_statement) (delete_statement) (continue_statement) (break_statement)] @statement
(augmented_assignment operator: _ @assigns)
(assignment left: (identifier) @assigned)
(identifier) @name
(for_statement body: (block) @loop)
(while_statement body: (block) @loop)
(except_clause) @handler
(raise_statement . (call) @raised)
(string) @string
[(integer) (float)] @number
[(true) (false)] @boolean
(call function: (_) @_module arguments: (argument_list . (string) @pattern) (#match? @_module "^re\\."))
[(import_statement) (import_from_statement)] @imported
[(comment) (type) (assert_statement)] @ignored
((comment) @comment (#not-match? @comment "^#!|^#.*coding[:=]"))
(expression_statement . (string) @docstring . (#not-match? @docstring "^[rRbB]*[fF]")) @ignored
; Annotations that nothing reads: of local variables, and of functions that nothing decorates.
(function_definition body: (block (expression_statement (assignment type: (_) @annotation right: (_)))))
(module (function_definition return_type: (_) @annotation))
(module (function_definition parameters: (parameters (_ type: (_) @annotation))))
(class_definition body: (block (function_definition return_type: (_) @annotation)))
(class_definition body: (block (function_definition parameters: (parameters (_ type: (_) @annotation)))))
(assignment left: (identifier) @_name (#match? @_name "^__\\w+__$")) @ignored
(assignment left: (identifier) @_name right: (_) @described
  (#match? @_name "^__(all|author|author_email|copyright|date|description|license|title|url|version)__$"))
(assignment right: (call function: (_) @_type) (#match? @_type "(^|\\.)(TypeVar|ParamSpec|TypeVarTuple|NewType)$")) @ignored
(call function: (_) @_type arguments: (argument_list . (_) @ignored) (#match? @_type "(^|\\.)cast$"))
(if_statement condition: (_) @ignored consequence: (_) @ignored (#match? @ignored "TYPE_CHECKING$"))
(if_statement condition: (_) @_only consequence: (_) @ignored (#match? @_only "TYPE_CHECKING$"))
(if_statement condition: (comparison_operator (identifier) @_main) @ignored (#eq? @_main "__name__"))
(except_clause (identifier) @_missing (#match? @_missing "^(ImportError|ModuleNotFoundError)$")) @ignored
(function_definition name: (_) @_text body: (_) @ignored (#eq? @_text "__repr__"))
(class_definition name: (_) @_error body: (block (function_definition name: (_) @_text body: (_) @ignored))
  (#match? @_error "(Error|Exception|Warning)$") (#eq? @_text "__str__"))
(decorator (_) @_same (#match? @_same "(^|\\.)(wraps|(lru_|c)?cache|cached_property|total_ordering|overload|override|final|abstract\\w*)\\b")) @ignored
(call function: (identifier) @_said (#match? @_said "^(str|list|bool|tuple|set|dict|iter|reversed|sorted|int|float|len|super)$")) @conversion
(raise_statement (call arguments: (argument_list) @words))
(call function: (_) @_error arguments: (argument_list) @words (#match? @_error "(Error|Exception|Warning)$"))
(except_clause (identifier) @broad (#match? @broad "^(Exception|BaseException)$"))
(except_clause (as_pattern . (identifier) @broad) (#match? @broad "^(Exception|BaseException)$"))
(call function: (_) @_said arguments: (argument_list) @words (#match? @_said "(^|\\.)warn$"))
(call function: (_) @_said arguments: (argument_list) @talk (#match? @_said "^(.*log(ger|ging)?)\\."))
(call function: (_) @_said arguments: (argument_list (keyword_argument value: (_) @_err)) @talk
  (#eq? @_said "print") (#match? @_err "stderr$"))
(call function: (_) @_said arguments: (argument_list (keyword_argument name: (_) @_err)) @talk
  (#match? @_said "(^|\\.)echo$") (#eq? @_err "err"))
(keyword_argument name: (identifier) @_help
  (#match? @_help "^(help|description|epilog|metavar|stacklevel|timeout|maxsize|encoding|buffering|bufsize)$")) @ignored
; Strings that only say names, and what something from outside may know by its name.
(assignment left: (identifier) @_all right: (_ (string) @naming) (#eq? @_all "__all__"))
(call function: (_) @_marks arguments: (argument_list . (string) @naming) (#match? @_marks "parametrize$"))
(class_definition name: (_) @class)
(class_definition superclasses: (_) @inherits)
((decorator) @inherits (#not-match? @inherits "^@((static|class)method|property|.*mark\\.parametrize)\\b"))
(call function: (_) @_table arguments: (argument_list (keyword_argument name: (_) @key))
  (#match? @_table "(^|\\.)(dict|update|(Simple)?Namespace)$"))
(call function: (_) @spreads arguments: (argument_list (dictionary_splat)))
[(function_definition name: (_) @taker) (class_definition name: (_) @taker)]
; How many rounds a loop has at most.
(for_statement right: (call function: (_) @_range arguments: (argument_list (integer) @bound .)) (#eq? @_range "range"))
(for_statement right: (call function: (_) @_range arguments: (argument_list . (_) . (integer) @bound . (_) .)) (#eq? @_range "range"))
(for_in_clause right: (call function: (_) @_range arguments: (argument_list (integer) @bound .)) (#eq? @_range "range"))
(while_statement condition: (comparison_operator (_) (integer) @bound))
[(list_comprehension) (dictionary_comprehension) (set_comprehension)] @collected
; Code in texts.
(call function: (identifier) @_runs (#match? @_runs "^(eval|exec|compile)$")) @evaluated
; What changes a collection in place: where a caller gave it, only the caller can tell.
(call function: (attribute object: (identifier) @altered attribute: (_) @_changes)
  (#match? @_changes "^(append|extend|insert|remove|pop|popitem|clear|sort|reverse|update|setdefault|add|discard)$"))
(call function: (_) @_changes arguments: (argument_list . (identifier) @altered)
  (#match? @_changes "(^|\\.)(shuffle|heap(ify|push|pop)|insort\\w*)$"))
(assignment left: (subscript value: (identifier) @altered subscript: (_) @_at) (#not-match? @_at ":") (#not-eq? @altered "self"))
(augmented_assignment left: (subscript value: (identifier) @altered))
(augmented_assignment left: (identifier) @altered right: [(list) (list_comprehension)])
(delete_statement (subscript value: (identifier) @altered))
