"""`python -m bench`: every measurement, one after the other."""

from bench import check, discover, hooks, render, start

if __name__ == "__main__":
    start.main()
    discover.main()
    render.main()
    check.main()
    hooks.main()
