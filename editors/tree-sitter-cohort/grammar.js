/**
 * Cohort's grammar for tree-sitter. It follows frontend/src/grammar.lalrpop, but for what the compiler refuses
 * with a message of its own: an editor shows a program while it is written.
 */

/// <reference types="tree-sitter-cli/dsl" />

const PREC = { or: 1, and: 2, compare: 3, sum: 4, product: 5, prefix: 6, postfix: 7 };

/** Any number, with an optional comma at the end. */
const comma = rule => optional(comma1(rule));
const comma1 = rule => seq(rule, repeat(seq(',', rule)), optional(','));
const bars = rule => seq(rule, repeat(seq('|', rule)));

module.exports = grammar({
  name: 'cohort',

  word: $ => $.identifier,
  extras: $ => [/[\s\uFEFF]/, $.comment],
  supertypes: $ => [$._item, $._expression, $._pattern, $._type],

  rules: {
    source_file: $ => repeat($._item),
    comment: _ => token(seq('//', /[^\n]*/)),

    // Items.

    _item: $ => choice($.import, $.dims, $.parameter, $.constant, $.data_type, $.alias, $.function),

    import: $ => seq('import', field('path', $.string), optional(';')),
    dims: $ => seq('dim', $.identifier, repeat(seq(',', $.identifier))),
    parameter: $ => seq('param', field('name', $.identifier), ':', field('type', $._type), optional($.stored)),
    stored: $ => seq('from', $.string, optional(seq('.', field('transposed', $.identifier)))),
    constant: $ => seq('let', field('name', $.identifier), '=', field('value', $._expression), optional(';')),
    data_type: $ => seq(
      'type', field('name', $.identifier), optional($.generics), '=', optional('|'), bars($.constructor),
    ),
    alias: $ => seq(
      'type', field('name', $.identifier), optional($.generics), '=',
      field('type', choice($.applied_type, $.tensor_type, $.array_type, $.tuple_type)),
    ),
    function: $ => seq(
      'fn', field('name', $.identifier), optional($.generics), '(', comma($.argument), ')', '->',
      field('result', $._type), field('body', $.block),
    ),
    generics: $ => seq('<', comma($.identifier), '>'),
    argument: $ => seq(field('name', $.identifier), ':', field('type', $._type)),
    constructor: $ => seq(field('name', $.identifier), optional(seq('(', comma($.field), ')'))),
    field: $ => seq(optional(seq(field('name', $.identifier), ':')), field('type', $._type)),

    // Types and dims.

    _type: $ => choice($.type_name, $.applied_type, $.tensor_type, $.array_type, $.tuple_type),
    type_name: $ => $.identifier,
    applied_type: $ => seq(field('name', $.identifier), '<', comma($._type), '>'),
    tensor_type: $ => seq(field('element', $.identifier), '[', comma($._dim), ']'),
    array_type: $ => seq('[', $._type, ']'),
    tuple_type: $ => seq('(', comma($._type), ')'),

    _dim: $ => choice($.dim_name, $.integer, '_', $.dim_operation, seq('(', $._dim, ')')),
    dim_name: $ => $.identifier,
    dim_operation: $ => choice(
      prec.left(PREC.sum, seq($._dim, choice('+', '-'), $._dim)),
      prec.left(PREC.product, seq($._dim, choice('*', '/'), $._dim)),
    ),

    // Blocks, and what else is not an operand.

    block: $ => seq('{', repeat($._statement), optional($._full), '}'),
    _statement: $ => choice($.let, $.phase),
    let: $ => seq(
      'let', field('pattern', choice($._pattern, $.or_pattern)), optional(seq(':', field('type', $._type))),
      '=', field('value', $._full), ';',
    ),
    phase: _ => seq('phase', ';'),

    _full: $ => choice($._block_like, $._expression),
    _block_like: $ => choice($.block, $.if, $.match, $.while, $.for),
    if: $ => seq(
      'if', field('condition', $._expression), field('then', $.block),
      optional(seq('else', field('else', choice($.block, $.if)))),
    ),
    match: $ => seq('match', field('value', $._expression), '{', optional($._arms), '}'),
    _arms: $ => choice(
      seq(repeat1($._closed_arm), optional(alias($._open_arm, $.arm))),
      alias($._open_arm, $.arm),
    ),
    // The comma may be left out after a block and after the last arm.
    _closed_arm: $ => choice(
      seq(alias($._block_arm, $.arm), optional(',')),
      seq(alias($._open_arm, $.arm), ','),
    ),
    _block_arm: $ => seq($._case, field('body', $._block_like)),
    _open_arm: $ => seq($._case, field('body', $._expression)),
    _case: $ => seq(
      field('pattern', choice($._pattern, $.or_pattern)), optional(seq('if', field('guard', $._expression))), '=>',
    ),
    while: $ => seq('while', field('condition', $._expression), $._loop),
    for: $ => seq('for', field('pattern', choice($._pattern, $.or_pattern)), 'in', field('array', $._expression), $._loop),
    _loop: $ => seq('with', '(', comma($.loop_variable), ')', field('body', $.block)),
    loop_variable: $ => seq(
      field('name', $.identifier), optional(seq(':', field('type', $._type))), '=', field('value', $._full),
    ),

    // Patterns.

    _pattern: $ => choice(
      $.wildcard, $.name_pattern, $.constructor_pattern, $.tuple_pattern, $.integer_pattern, $.boolean,
    ),
    or_pattern: $ => seq($._pattern, repeat1(seq('|', $._pattern))),
    wildcard: _ => '_',
    name_pattern: $ => $.identifier,
    constructor_pattern: $ => seq(
      field('name', $.identifier), '(', choice('..', comma($.field_pattern)), ')',
    ),
    field_pattern: $ => seq(optional(seq(field('name', $.identifier), '=')), choice($._pattern, $.or_pattern)),
    tuple_pattern: $ => seq('(', comma(choice($._pattern, $.or_pattern)), ')'),
    integer_pattern: $ => seq(optional('-'), $.integer),

    // Expressions.

    _expression: $ => choice(
      $.binary, $.unary, $.index, $.field_access, $.call, $.parenthesized, $.tuple, $.array, $.identifier,
      $.integer, $.float, $.string, $.boolean,
    ),
    binary: $ => choice(...[
      [PREC.or, '||'],
      [PREC.and, '&&'],
      [PREC.compare, choice('==', '!=', '<', '<=', '>', '>=')],
      [PREC.sum, choice('+', '-')],
      [PREC.product, choice('*', '/', '%', '@')],
    ].map(([level, operator]) => prec.left(level, seq(
      field('left', $._expression), field('operator', operator), field('right', $._expression),
    )))),
    unary: $ => prec(PREC.prefix, seq(field('operator', choice('-', '!')), field('operand', $._expression))),
    index: $ => prec(PREC.postfix, seq(
      field('value', $._expression), '[', comma(choice($._full, $.range)), ']',
    )),
    range: $ => seq(optional(field('start', $._expression)), '..', optional(field('end', $._expression))),
    field_access: $ => prec(PREC.postfix, seq(field('value', $._expression), '.', field('name', $.identifier))),
    call: $ => prec(PREC.postfix, seq(
      field('function', $.identifier), '(', comma(choice($._full, $.named_argument, $.closure)), ')',
    )),
    named_argument: $ => seq(field('name', $.identifier), '=', field('value', $._full)),
    closure: $ => seq('|', comma($._pattern), '|', field('body', $._full)),
    parenthesized: $ => seq('(', $._full, ')'),
    tuple: $ => seq('(', $._full, ',', comma($._full), ')'),
    array: $ => seq('[', comma($._full), ']'),

    identifier: _ => /[A-Za-z_][A-Za-z0-9_]*/,
    integer: _ => /[0-9]+/,
    float: _ => /[0-9]+(\.[0-9]+([eE][+-]?[0-9]+)?|[eE][+-]?[0-9]+)/,
    string: _ => /"[^"\n]*"/,
    boolean: _ => choice('true', 'false'),
  },
});
