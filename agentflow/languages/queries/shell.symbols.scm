(function_definition name: (word) @name) @definition
(program (variable_assignment name: (variable_name) @name) @definition)
(command name: (command_name (word) @use))
(variable_name) @use
(command name: (command_name (word) @_loads) argument: (word) @import (#match? @_loads "^(source|[.])$"))
