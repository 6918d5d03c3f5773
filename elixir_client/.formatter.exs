[
  inputs: ["{mix,.formatter}.exs", "{config,lib,test,demo,scripts,examples}/**/*.{ex,exs}"],
  locals_without_parens: [defcall: 2]
]
