[inputs: ["{mix,.formatter}.exs", "{config,lib,test,demo}/**/*.{ex,exs}"]]
