[(method name: (_) @name) (singleton_method name: (_) @name)] @definition
[(class name: (_) @name) (module name: (_) @name)] @class
(assignment left: (constant) @name) @definition
[(identifier) (constant)] @use
(call method: (identifier) @_loads arguments: (argument_list (string (string_content) @import)) (#match? @_loads "^require"))
