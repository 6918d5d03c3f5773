"""How right errors are: labelled cases, faulty and correct, and a table of what came of them."""
