module splitter.io/sandbox/guest

go 1.26.0
