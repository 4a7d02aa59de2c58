(if_statement condition: (_) @condition)
(elif_clause . "elif" . (_) @condition)
(while_statement condition: (_) @condition)
(binary_expression) @binary
(list) @binary
(command argument: (_) @argument)
(pipeline (command) @part)
(if_statement (command) @statement)
(compound_statement (command) @statement)
(program (command) @statement)
(do_group (command) @statement)
(do_group) @loop_block
[(string) (raw_string)] @string
(number) @number
(comment) @ignored
