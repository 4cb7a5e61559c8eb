"""`python -m splitter`: the same as the command `splitter`."""

from splitter.plugin.cli import main

if __name__ == "__main__":
    main()
