; What is named by its place comes behind what is known by its form: the last match counts.

(comment) @comment
(string) @string
(integer) @constant.numeric.integer
(float) @constant.numeric.float
(boolean) @constant.builtin.boolean

["dim" "param" "type" "let" "fn" "from"] @keyword
"import" @keyword.control.import
["if" "else" "match"] @keyword.control.conditional
["while" "for" "in" "with"] @keyword.control.repeat
(phase) @keyword.control

["->" "=>" "==" "!=" "<" "<=" ">" ">=" "&&" "||" ".." "+" "-" "*" "/" "%" "@" "!" "=" "|"] @operator
["(" ")" "[" "]" "{" "}"] @punctuation.bracket
["," ";" ":" "."] @punctuation.delimiter

(identifier) @variable
((identifier) @constructor (#match? @constructor "^[A-Z]"))
((name_pattern) @constructor (#match? @constructor "^[A-Z]"))

(function name: (identifier) @function)
(call function: (identifier) @function)
((call function: (identifier) @constructor) (#match? @constructor "^[A-Z]"))
(argument name: (identifier) @variable.parameter)
(named_argument name: (identifier) @variable.parameter)
(parameter name: (identifier) @constant)
(constant name: (identifier) @constant)
(dims (identifier) @constant)
(dim_name) @constant
(field name: (identifier) @variable.other.member)
(field_pattern name: (identifier) @variable.other.member)
(field_access name: (identifier) @variable.other.member)

(data_type name: (identifier) @type)
(alias name: (identifier) @type)
(generics (identifier) @type.parameter)
(type_name) @type
(applied_type name: (identifier) @type)
(tensor_type element: (identifier) @type)
((type_name) @type.builtin (#any-of? @type.builtin "f32" "i32" "bool" "str"))
((tensor_type element: (identifier) @type.builtin) (#any-of? @type.builtin "f32" "i32" "bool"))
(constructor name: (identifier) @constructor)
(constructor_pattern name: (identifier) @constructor)
