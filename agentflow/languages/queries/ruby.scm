(method body: (body_statement) @body)
(singleton_method body: (body_statement) @body)
(return (argument_list (_) @returned))
(method body: (body_statement (_) @returned .))
(singleton_method body: (body_statement (_) @returned .))
[(if condition: (_) @condition) (elsif condition: (_) @condition) (unless condition: (_) @condition)]
[(if_modifier condition: (_) @condition) (unless_modifier condition: (_) @condition)]
[(while condition: (_) @loop_condition) (while_modifier condition: (_) @loop_condition)]
(until condition: (_) @condition)
(conditional condition: (_) @condition)
(binary) @binary
(unary operator: "!" operand: (_) @negated)
(call) @call
(argument_list (_) @argument)
(array (_) @element)
(hash (_) @element)
(optional_parameter value: (_) @default)
(when) @part
(when (pattern) @element . ",")
(when "," . (pattern) @element)
(interpolation) @part
(body_statement [(call) (assignment) (operator_assignment)] @statement)
(then [(call) (assignment) (operator_assignment)] @statement)
(do_block (body_statement [(call) (assignment) (operator_assignment)] @statement))
[(next) (break)] @statement
(operator_assignment operator: _ @assigns)
(assignment left: (identifier) @assigned)
(identifier) @name
(rescue body: (then) @handler_body)
(string) @string
[(integer) (float)] @number
[(true) (false)] @boolean
(regex) @pattern
(comment) @ignored
(call method: (_) @_said (#match? @_said "^(to_\\w|to_str|to_sym|dup|freeze|each|require.*|attr_\\w+|include|extend)$")) @conversion
(call method: (identifier) @_said arguments: (argument_list (_) @raised .) (#match? @_said "^raise$") (#match? @raised "^[A-Z][\\w:]*$"))
(call method: (identifier) @_said arguments: (argument_list) @words (#match? @_said "^(raise|warn)$"))
(call method: (identifier) @_said arguments: (argument_list) @ignored (#match? @_said "^(require.*|attr_\\w+|include|extend)$"))
(call receiver: (_) @_said arguments: (argument_list) @talk (#match? @_said "(?i)(^|\\.|@)log(ger)?$"))
((comment) @comment (#not-match? @comment "^#!|^#.*(coding|frozen|magic|warn)"))
(class name: (_) @class)
(superclass) @inherits
(call receiver: (integer) @bound method: (identifier) @_times (#eq? @_times "times"))
(call method: (identifier) @_runs (#match? @_runs "^((instance|class|module)_)?eval$")) @evaluated
