; What the index of symbols holds: what is defined, as @class where its members belong to it, its @name, uses and imports.
(function_definition name: (identifier) @name) @definition
(class_definition name: (identifier) @name) @class
(module (expression_statement (assignment left: (identifier) @name) @definition))
(class_definition body: (block (expression_statement (assignment left: (identifier) @name) @definition)))
(identifier) @use
(import_statement name: (dotted_name) @import)
(import_statement name: (aliased_import name: (dotted_name) @import))
(import_from_statement module_name: (_) @import)
(import_from_statement name: (dotted_name) @import)
