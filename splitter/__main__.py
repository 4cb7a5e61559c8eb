"""`python -m splitter`: the same as the command `splitter`."""

from splitter.command import main

if __name__ == "__main__":
    main()
