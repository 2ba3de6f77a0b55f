"""The command line: arguments in, results out; work happens elsewhere."""
