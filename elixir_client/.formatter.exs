[
  inputs: ["{mix,.formatter}.exs", "{config,lib,test,demo}/**/*.{ex,exs}"],
  locals_without_parens: [defcall: 2]
]
