[
  inputs: ["{mix,.formatter}.exs", "{config,lib,test,demo,scripts,examples}/**/*.{ex,exs}"],
  locals_without_parens: [spec_with_bang: 1]
]
